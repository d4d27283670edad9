package threadid

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
)

// Child is the id of the thread that plays a part for another: always the same for the
// same part of the same head, so nobody need write down which children there are. It
// is of its parent's millisecond and sorts below it. attempt tells one that is played
// anew from the one before. The error is [ErrInvalid].
func Child(parent, head, role string, attempt int, key string) (string, error) {
	at, err := Time(parent)
	if err != nil {
		return "", err
	}
	above, err := ulid.ParseStrict(parent)
	if err != nil {
		return "", err
	}
	// A length goes before each part, so that no two lists of parts are one text.
	var parts strings.Builder
	for _, part := range []string{"uwf child 1", parent, head, role, strconv.Itoa(attempt), key} {
		parts.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		parts.WriteString(part)
	}
	sum := sha256.Sum256([]byte(parts.String()))
	h := new(big.Int).SetBytes(sum[:len(above.Entropy())])
	h.Mul(h, new(big.Int).SetBytes(above.Entropy()))
	h.Rsh(h, uint(8*len(above.Entropy())))
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(at)); err != nil {
		return "", err
	}
	err = id.SetEntropy(h.FillBytes(make([]byte, len(above.Entropy()))))
	return id.String(), err
}
