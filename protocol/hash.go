package protocol

import (
	"fmt"
	"strings"
)

// HashLen is the length of a hash in characters.
const HashLen = 13

// Hash names a node: 64 bits as 13 characters of Crockford base32, upper case,
// left-padded, so that the first character is 0 to F. The empty Hash names
// nothing. How a hash is computed depends on the store (package cas).
type Hash string

// HashOf is the hash that a number stands for.
func HashOf(n uint64) Hash {
	var b [HashLen]byte
	for i := HashLen - 1; i >= 0; i-- {
		b[i] = crockford[n&31]
		n >>= 5
	}
	return Hash(b[:])
}

// Number is what a hash in canonical form stands for.
func (h Hash) Number() (n uint64) {
	for i := range len(h) {
		n = n<<5 | uint64(strings.IndexByte(crockford, h[i]))
	}
	return n
}

// ParseHash reads a hash as a person types it: lower case is folded, and I, L
// and O are read as 1, 1 and 0. Inside payloads only the canonical form counts
// ([Hash.Valid]).
func ParseHash(s string) (Hash, error) {
	h := Hash(FoldCrockford(s))
	if !h.Valid() {
		return "", fmt.Errorf("%q is not a hash: want %d characters of Crockford base32, the first 0 to F", s, HashLen)
	}
	return h, nil
}

// Valid reports whether h is in canonical form.
func (h Hash) Valid() bool {
	if len(h) != HashLen || h[0] > 'F' {
		return false
	}
	for i := range len(h) {
		if !isCrockford(h[i]) {
			return false
		}
	}
	return true
}

// Short is the hash cut to the length that people compare.
func (h Hash) Short() string {
	if len(h) > 7 {
		return string(h[:7])
	}
	return string(h)
}

// FoldCrockford maps what a person may type for a Crockford character to that
// character; characters outside the alphabet stay as they are.
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

// crockford is the alphabet: each character stands for its place.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func isCrockford(c byte) bool { return strings.IndexByte(crockford, c) >= 0 }
