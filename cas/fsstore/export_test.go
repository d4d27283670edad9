package fsstore

import "encoding/binary"

// WithVersion returns an index with another version and a valid checksum.
func WithVersion(index []byte, version byte) string {
	index[len(indexWords)] = version
	binary.BigEndian.PutUint32(index[indexFixed-4:], headSum(index))
	return string(index)
}
