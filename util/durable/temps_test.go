package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

func TestRemoveTemps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, fsys := filepath.Join(dir, "config.yaml"), durable.OS()
	require.NoError(t, durable.RemoveTemps(fsys, filepath.Join(dir, "none", "x")))
	for range 2 {
		_, err := fsys.WriteTemp(path, []byte("key"), 0o600, durable.NoFlush)
		require.NoError(t, err)
	}
	other, err := fsys.WriteTemp(path+"-more", nil, 0o600, durable.NoFlush)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, durable.RemoveTemps(fsys, path))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.FileExists(t, other)
	require.FileExists(t, path)
}
