package cliagent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesOfACall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "f")
	remove, err := writeFiles([]File{{Path: path, Data: []byte("x")}})
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	remove()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	remove, err = writeFiles([]File{{Path: filepath.Join(path, "f")}})
	require.Error(t, err)
	remove()
}
