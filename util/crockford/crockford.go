// Package crockford encodes bits in Crockford's base32, alphabet
// 0-9A-HJKMNP-TV-Z. There are two ways to fit bits into characters of five: the
// store's hashes are padded on the left (a number), the original's thread ids
// on the right (a bit string).
package crockford

// Encode64 writes a number as 13 characters, padded on the left, so that the
// first one is 0 to F.
func Encode64(n uint64) string { panic("unwritten") }

// Decode64 reads what Encode64 writes, in upper or lower case.
func Decode64(s string) (uint64, error) { panic("unwritten") }
