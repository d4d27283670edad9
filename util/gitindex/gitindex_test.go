package gitindex

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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

func FuzzEntries(f *testing.F) {
	for _, version := range []uint32{2, 3, 4} {
		f.Add(index(version, "a", "dir/b", ""))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		require.LessOrEqual(t, len(Entries(text)), len(text)/40)
	})
}

func TestDistrust(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000_000, 5)
	for _, hash := range []int{sha1.Size, sha256.Size} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600))
		git := func(args ...string) string {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			return string(out)
		}
		git("init", "-q", "--object-format="+map[int]string{sha1.Size: "sha1", sha256.Size: "sha256"}[hash])
		require.NoError(t, os.Chtimes(filepath.Join(dir, "a"), at, at))
		git("add", "a")
		require.Empty(t, git("diff-files"))
		file := filepath.Join(dir, ".git", "index")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, Each(text, hash, func(e Entry, _ []byte) bool { e.Distrust(); return true }))
		Sign(text, hash)
		require.NoError(t, os.WriteFile(file, text, 0o600))
		require.NotEmpty(t, git("diff-files"))
		git("fsck")
	}
}
