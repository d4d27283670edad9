package tools

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another process keeps replacing a directory by a link that leads outside, while files in it are written and
// read. Nothing is written or read outside.
func TestSwappingADirectoryWhileWriting(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{"dir/f": "mine\n"})
	base := filepath.Dir(w.Dir())
	dir, aside := filepath.Join(w.Dir(), "dir"), filepath.Join(w.Dir(), "aside")
	outside := filepath.Join(base, "outside")
	require.NoError(t, os.Mkdir(outside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("theirs\n"), 0o644))
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if os.Rename(dir, aside) == nil && os.Symlink(outside, dir) == nil {
				_ = os.Remove(dir)
			}
			if os.Rename(aside, dir) != nil { // a write has created the directory again
				_ = os.RemoveAll(aside)
			}
		}
	})
	for range 300 {
		call(t, r, "write_file", args{"path": "dir/new", "content": "x\n"})
		require.NotContains(t, call(t, r, "read_file", args{"path": "dir/f"}), "theirs")
		call(t, r, "edit_file", args{"path": "dir/f", "old_string": "theirs", "new_string": "changed"})
	}
	close(stop)
	swapper.Wait()
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	b, err := os.ReadFile(filepath.Join(outside, "f"))
	require.NoError(t, err)
	require.Equal(t, "theirs\n", string(b))
}
