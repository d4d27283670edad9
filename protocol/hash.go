package protocol

import (
	"fmt"
	"strings"
)

// HashLen is the length of a hash in characters.
const HashLen = 13

// Hash identifies a node. It is a 64-bit number as 13 characters of Crockford base32, in upper case and
// left-padded, so the first character is 0 to F. The empty Hash identifies nothing. How a hash is computed
// depends on the store (package cas).
type Hash string

// HashOf converts a number to a hash.
func HashOf(n uint64) Hash {
	var b [HashLen]byte
	for i := HashLen - 1; i >= 0; i-- {
		b[i] = crockford[n&31]
		n >>= 5
	}
	return Hash(b[:])
}

// Number converts a hash in canonical form to a number.
func (h Hash) Number() (n uint64) {
	for i := range len(h) {
		n = n<<5 | uint64(strings.IndexByte(crockford, h[i]))
	}
	return n
}

// ParseHash parses a hash as a user types it: lower case is accepted, and I, L and O are read as 1, 1 and 0.
// Payloads must contain the canonical form ([Hash.Valid]).
func ParseHash(s string) (Hash, error) {
	h := Hash(FoldCrockford(s))
	if !h.Valid() {
		return "", fmt.Errorf("%q is not a hash: want %d characters of Crockford base32, the first from 0 to F", s, HashLen)
	}
	return h, nil
}

// Valid reports whether h is in canonical form.
func (h Hash) Valid() bool {
	if len(h) != HashLen || h[0] > 'F' {
		return false
	}
	for i := range len(h) {
		if strings.IndexByte(crockford, h[i]) < 0 {
			return false
		}
	}
	return true
}

// Short returns the hash shortened for display.
func (h Hash) Short() string {
	if len(h) > 7 {
		return string(h[:7])
	}
	return string(h)
}

// FoldCrockford maps the variants of Crockford characters that a user may type to the canonical characters.
// It keeps characters outside the alphabet.
func FoldCrockford(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 'i' || r == 'I' || r == 'l' || r == 'L':
			return '1'
		case r == 'o' || r == 'O':
			return '0'
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// crockford is the alphabet; the value of a character is its index.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
