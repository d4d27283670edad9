package gitindex

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// index builds an index of a version with names and 20-byte hashes, all skipped or assumed unchanged.
func index(version uint32, names ...string) []byte {
	all := append([]byte("DIRC"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, version), uint32(len(names)))...)
	for _, name := range names {
		entry := make([]byte, 62)
		entry[60] = 0x80
		if version == 4 {
			entry = append(entry, 0) // nothing of the previous name is dropped
		}
		entry = append(append(entry, name...), 0)
		for version < 4 && len(entry)%8 != 0 {
			entry = append(entry, 0)
		}
		all = append(all, entry...)
	}
	return all
}

func TestEntries(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Entry{{Name: "a", Passed: "assume-unchanged"}, {Name: "dir/b", Passed: "assume-unchanged"}}, Entries(index(2, "a", "dir/b")))
	require.Equal(t, []Entry{{Name: "a", Passed: "assume-unchanged"}, {Name: "ab", Passed: "assume-unchanged"}}, Entries(index(4, "a", "b")))
	require.Empty(t, Entries(nil))
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	for _, size := range []int{20, 32} {
		none := append(index(2, "a", "dir/b"), make([]byte, size)...)
		require.False(t, IsSound(none, size), "as after a crash")
		sealed := bytes.Clone(none)
		Seal(sealed, size)
		require.True(t, IsSound(sealed, size))
		sealed[20]++
		damaged := bytes.Clone(sealed)
		Seal(damaged, size)
		require.Equal(t, sealed, damaged)
		require.False(t, IsSound(damaged, size))
		require.False(t, IsSound(nil, size))
		Seal(nil, size)
	}
}

func FuzzEntries(f *testing.F) {
	for _, version := range []uint32{2, 3, 4} {
		f.Add(index(version, "a", "dir/b", ""))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		require.LessOrEqual(t, len(Entries(text)), len(text)/40)
	})
}
