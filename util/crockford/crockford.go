// Package crockford encodes bits in Crockford's base32, alphabet
// 0-9A-HJKMNP-TV-Z. There are two ways to fit bits into characters of five: the
// store's hashes are padded on the left (a number), the original's thread ids
// on the right (a bit string).
//
// Decoding accepts lower case. It does not read I, L and O as 1, 1 and 0: that is
// for what people type, and done before (protocol.FoldCrockford).
package crockford

import (
	"errors"
	"fmt"
)

// The ways in which a string is not an encoding.
var (
	ErrLength = errors.New("wrong length")
	ErrRange  = errors.New("does not fit into 64 bits")
)

// CharError means that a character is not in the alphabet.
type CharError struct{ Char byte }

// Error implements error.
func (e *CharError) Error() string {
	return fmt.Sprintf("invalid Crockford base32 character %q", e.Char)
}

const (
	alphabet    = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	bitsPerChar = 5
	len64       = 13
)

// Encode64 writes a number as 13 characters, padded on the left, so that the
// first one is 0 to F.
func Encode64(n uint64) string {
	var b [len64]byte
	for i := len64 - 1; i >= 0; i-- {
		b[i] = alphabet[n&31]
		n >>= bitsPerChar
	}
	return string(b[:])
}

// Decode64 reads what Encode64 writes, in upper or lower case. Errors:
// [ErrLength], [ErrRange] if the first character is beyond F, [*CharError].
func Decode64(s string) (uint64, error) {
	if len(s) != len64 {
		return 0, ErrLength
	}
	var n uint64
	for i := range len(s) {
		v, err := value(s[i])
		if err != nil {
			return 0, err
		}
		if i == 0 && v > 15 {
			return 0, ErrRange
		}
		n = n<<bitsPerChar | uint64(v)
	}
	return n, nil
}

// EncodeBits writes the first n bits of b, the highest bit of each byte first,
// padded with zeros on the right to whole characters. b must hold n bits.
func EncodeBits(b []byte, n int) string {
	out := make([]byte, (n+bitsPerChar-1)/bitsPerChar)
	for bit := range n {
		if b[bit/8]>>(7-bit%8)&1 == 1 {
			out[bit/bitsPerChar] |= 1 << (bitsPerChar - 1 - bit%bitsPerChar)
		}
	}
	for i, v := range out {
		out[i] = alphabet[v]
	}
	return string(out)
}

// DecodeBits reads n bits that EncodeBits wrote, into as few bytes as hold them.
// As in the original, the padding may be anything. Errors: [ErrLength],
// [*CharError].
func DecodeBits(s string, n int) ([]byte, error) {
	if len(s) != (n+bitsPerChar-1)/bitsPerChar {
		return nil, ErrLength
	}
	out := make([]byte, (n+7)/8)
	for i := range len(s) {
		v, err := value(s[i])
		if err != nil {
			return nil, err
		}
		for j := range bitsPerChar {
			bit := i*bitsPerChar + j
			if bit < n && v>>(bitsPerChar-1-j)&1 == 1 {
				out[bit/8] |= 1 << (7 - bit%8)
			}
		}
	}
	return out, nil
}

// value is what a character stands for.
func value(c byte) (byte, error) {
	upper := c
	if c >= 'a' && c <= 'z' {
		upper -= 'a' - 'A'
	}
	switch {
	case upper >= '0' && upper <= '9':
		return upper - '0', nil
	case upper >= 'A' && upper <= 'H':
		return upper - 'A' + 10, nil
	case upper == 'J' || upper == 'K':
		return upper - 'J' + 18, nil
	case upper == 'M' || upper == 'N':
		return upper - 'M' + 20, nil
	case upper >= 'P' && upper <= 'T':
		return upper - 'P' + 22, nil
	case upper >= 'V' && upper <= 'Z':
		return upper - 'V' + 27, nil
	default:
		return 0, &CharError{Char: c}
	}
}
