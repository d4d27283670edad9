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

// isCrockford reports whether c is in the alphabet 0-9A-HJKMNP-TV-Z.
func isCrockford(c byte) bool {
	switch c {
	case 'I', 'L', 'O', 'U':
		return false
	}
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}
