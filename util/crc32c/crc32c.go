// Package crc32c computes CRC-32C checksums, cheaply in a process that checksums only a few bytes.
package crc32c

import (
	"hash/crc32"
	"sync"
)

// short is the largest input for the small table. Package hash/crc32 is fast with longer ones, but spends 0.15 ms on
// tables first, and most processes checksum only records of a few bytes.
const short = 4 << 10

// Checksum returns the checksum of b.
func Checksum(b []byte) uint32 { return Update(0, b) }

// Update returns the checksum of a text followed by b, given the text's checksum.
func Update(sum uint32, b []byte) uint32 {
	if len(b) > short {
		return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
	}
	return crc32.Update(sum, small(), b)
}

// small is the table for one byte at a time.
var small = sync.OnceValue(func() *crc32.Table {
	var t crc32.Table
	for i := range t {
		t[i] = uint32(i)
		for range 8 {
			t[i] = t[i]>>1 ^ crc32.Castagnoli&-(t[i]&1)
		}
	}
	return &t
})
