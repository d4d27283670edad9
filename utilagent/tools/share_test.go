package tools_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// A program gets the same access as a model: the workspace, and nothing else.
func TestServedFilesStayInside(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	dir := filepath.Join(outer, "work")
	require.NoError(t, os.Mkdir(dir, 0o700))
	secret := filepath.Join(outer, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s"), 0o600))
	require.NoError(t, os.Symlink(outer, filepath.Join(dir, "up")))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "link")))
	w, err := tools.OpenWorkspace(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })

	for _, name := range []string{secret, "../secret", "link", "up/secret", "up/new", dir + "/../secret"} {
		require.False(t, w.Contains(name), name)
		_, err := w.Open(name)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, fs.ErrNotExist, name)
		require.Error(t, w.Write(name, "x"), name)
	}
	text, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "s", string(text))

	_, err = w.Open("new/file")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, w.Write(filepath.Join(dir, "new", "file"), "hello"))
	f, err := w.Open("new/file")
	require.NoError(t, err)
	defer f.Close()
	text, err = io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
	require.Equal(t, "file", onlyName(t, filepath.Join(dir, "new")))
}

func onlyName(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0].Name()
}
