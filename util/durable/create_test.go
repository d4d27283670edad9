package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

// A file being written is invisible under its name. It then replaces the old one
// atomically, or leaves no trace.
func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "big")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	for _, commit := range []bool{false, true} {
		f, err := durable.Create(durable.OS(), path, 0o644)
		require.NoError(t, err)
		_, err = f.Write([]byte("new "))
		require.NoError(t, err)
		_, err = f.Write([]byte("content"))
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "old", string(data))
		if commit {
			require.NoError(t, f.Commit())
		} else {
			require.NoError(t, f.Abort())
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "no temporary file stays")
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new content", string(data))
	_, err = durable.Create(durable.OS(), filepath.Join(dir, "missing", "big"), 0o644)
	require.ErrorIs(t, err, os.ErrNotExist)
}
