package crc32c

import (
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSameAsStandard(t *testing.T) {
	t.Parallel()
	b := make([]byte, 2*short)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	standard := func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
	for _, n := range []int{0, 1, 13, 255, short - 1, short, short + 1, len(b)} {
		require.Equal(t, standard(b[:n]), Checksum(b[:n]), "%d bytes", n)
		require.Equal(t, standard(b), Update(Checksum(b[:n]), b[n:]), "%d bytes first", n)
	}
}
