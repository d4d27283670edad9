// Package threadid creates and parses thread ids: 26 characters of Crockford base32, with 48 bits of time in
// milliseconds and 80 random bits. New ids are standard ULIDs (oklog/ulid), padded with two zero bits on the
// left. The original pads on the right, so its ids appear to have four times the time: in 2026 they begin
// with 06G instead of 01M.
//
// Don't compare ids as strings to find the newest; compare their times with [Newer], or with [NewestFirst]
// for many.
package threadid

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/thirdparty/lean/ulid"
	"github.com/united-workforce/uwf/protocol"
)

// Len is the length of an id in characters.
const Len = ulid.EncodedSize

// ErrInvalid means that a text isn't a thread id.
var ErrInvalid = errors.New("not a thread id")

// year2100 is 2100-01-01 in milliseconds.
const year2100 = 4_102_444_800_000

// New returns a new id. rand must be cryptographic, because two processes can create an id in the same
// millisecond. It returns an error of rand, or an error for a time that doesn't fit an id (before 1970, after
// 10889).
func New(now time.Time, rand io.Reader) (string, error) {
	if now.UnixMilli() < 0 {
		return "", fmt.Errorf("create thread id: %s is before 1970", now.Format(time.RFC3339))
	}
	id, err := ulid.New(ulid.Timestamp(now), rand)
	if err != nil {
		return "", fmt.Errorf("create thread id: %w", err)
	}
	id[6] |= 0x80 // first of the 80 random bits: leaves room for children below, see [Child]
	return id.String(), nil
}

// Parse returns the canonical form, in upper case, of a full id as a person types it: lower case letters and
// I, L and O are accepted. It accepts both kinds. Its error is [ErrInvalid].
func Parse(s string) (string, error) {
	id := protocol.FoldCrockford(s)
	if _, err := ulid.ParseStrict(id); err != nil {
		return "", fmt.Errorf("%w: %q: want %d characters 0-9, A-Z without I, L, O, U, the first 0 to 7", ErrInvalid, s, Len)
	}
	return id, nil
}

// Valid reports whether id is in canonical form.
func Valid(id string) bool {
	canonical, err := Parse(id)
	return err == nil && canonical == id
}

// Time returns the creation time of an id of either kind, in milliseconds. Its error is [ErrInvalid].
//
// An id comes from the original if its last two bits are zero, as its padding is, and if its time is in 2100
// or later when read as a standard ULID, but earlier when read in the original's way. Standard ids are
// therefore read correctly until 2100, and the original's from 2002 on, without ambiguity.
func Time(id string) (time.Time, error) {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q", ErrInvalid, id)
	}
	ms := u.Time()
	if original := ms >> 2; ms >= year2100 && original < year2100 && paddedRight(id) {
		ms = original
	}
	return time.UnixMilli(int64(ms)).UTC(), nil
}

// paddedRight reports whether the last two of an id's 130 bits are zero.
func paddedRight(id string) bool {
	return strings.IndexByte("048CGMRWcgmrw", id[len(id)-1]) >= 0
}

// Compare compares ids by time, and ids of the same millisecond by text. Invalid ids sort before all others.
func Compare(a, b string) int {
	ta, errA := Time(a)
	tb, errB := Time(b)
	switch {
	case errA != nil && errB == nil:
		return -1
	case errA == nil && errB != nil:
		return 1
	}
	return cmp.Or(ta.Compare(tb), strings.Compare(a, b))
}

// first2100 is the beginning of the first standard id in 2100.
const first2100 = "03QCPC7P00"

// NewestFirst compares two canonical ids and sorts the newer one first. It compares their texts without
// decoding times unless one of them might come from the original.
func NewestFirst(a, b string) int {
	if a < first2100 && b < first2100 {
		return strings.Compare(b, a)
	}
	return Compare(b, a)
}

// Child returns the id of the thread that plays a part for another. It is a function of its arguments, so
// that children needn't be recorded. It has its parent's millisecond and sorts below it. attempt
// distinguishes repeated attempts at the same part. Its error is [ErrInvalid].
func Child(parent, head, role string, attempt int, key string) (string, error) {
	at, err := Time(parent)
	if err != nil {
		return "", err
	}
	above, err := ulid.ParseStrict(parent)
	if err != nil {
		return "", err
	}
	// Each part has its length as a prefix, so that different lists never give the same text.
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
