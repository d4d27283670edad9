package fsstore

import "encoding/binary"

// MaxOpen bounds the files that a store keeps open.
const MaxOpen = maxOpen

// OpenFiles returns the number of open files of segments and indexes.
func (s *Store) OpenFiles() int {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	return len(s.open.open)
}

// WithVersion returns an index with another version and a valid checksum.
func WithVersion(index []byte, version byte) string {
	index[len(indexWords)] = version
	binary.BigEndian.PutUint32(index[indexFixed-4:], headSum(index))
	return string(index)
}
