package cas

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Seal is a SHA-256 that stands for a node and all that it leads to, types
// included. The hash of a node finds damage; a seal also withstands somebody who
// constructs other content for the same hash. The zero Seal is none.
type Seal [sha256.Size]byte

// sealPrefix keeps seals apart from every other use of SHA-256.
const sealPrefix = "uwf seal 1\n"

// SealOf is the seal of a node. below are the seals of what it needs, in order:
// of its type, unless it is its own, then of its refs ([Refs]).
//
//	SHA-256( "uwf seal 1\n" ‖ ascii(type) ‖ length of payload, 8 bytes, big endian ‖ payload ‖ below )
func SealOf(n Node, below []Seal) Seal {
	h := sha256.New()
	_, _ = h.Write([]byte(sealPrefix))
	_, _ = h.Write([]byte(n.Type))
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(n.Payload))))
	_, _ = h.Write(n.Payload)
	for _, s := range below {
		_, _ = h.Write(s[:])
	}
	return Seal(h.Sum(nil))
}

// ParseSeal reads a seal as [Seal.String] writes it, in either case.
func ParseSeal(text string) (Seal, error) {
	b, err := hex.DecodeString(strings.ToLower(text))
	if err != nil || len(b) != sha256.Size {
		return Seal{}, fmt.Errorf("%q is not a seal: want %d hexadecimal digits", text, 2*sha256.Size)
	}
	return Seal(b), nil
}

// String is the seal as 64 hexadecimal digits, "" for none.
func (s Seal) String() string {
	if s.IsZero() {
		return ""
	}
	return hex.EncodeToString(s[:])
}

// IsZero reports whether s is none.
func (s Seal) IsZero() bool { return s == Seal{} }

// MarshalText implements encoding.TextMarshaler.
func (s Seal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SealError means that a node, or something that it leads to, is not what was
// sealed. Got is none if the content could not be sealed.
type SealError struct {
	Hash      Hash
	Want, Got Seal
	Path      string // of the file that keeps the seal, if there is one
}

// Error implements error.
func (e *SealError) Error() string {
	where := ""
	if e.Path != "" {
		where = " (" + e.Path + ")"
	}
	if e.Got.IsZero() {
		return fmt.Sprintf("the seal of node %s is damaged%s", e.Hash, where)
	}
	return fmt.Sprintf("node %s is not what was sealed: its seal is %s, its content gives %s%s", e.Hash, e.Want, e.Got, where)
}
