package safeopen_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/safeopen"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	require.NoError(t, os.Symlink(file, link))

	data, err := safeopen.ReadFile(file, 5, safeopen.NoFollow)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(data))
	data, err = safeopen.ReadFile(link, 5, safeopen.Follow)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(data))

	var big *safeopen.TooBigError
	_, err = safeopen.ReadFile(file, 4, safeopen.NoFollow)
	require.ErrorAs(t, err, &big)
	assert.Equal(t, file+" is larger than 4 bytes", err.Error())

	var odd *safeopen.NotFileError
	_, err = safeopen.ReadFile(link, 5, safeopen.NoFollow)
	require.ErrorAs(t, err, &odd)
	assert.Equal(t, link+" is a symbolic link, not a file", err.Error())
	_, err = safeopen.ReadFile(dir, 5, safeopen.Follow)
	require.ErrorAs(t, err, &odd)
	assert.True(t, odd.Mode.IsDir())

	_, err = safeopen.ReadFile(filepath.Join(dir, "none"), 5, safeopen.Follow)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Files in a directory are read; the targets of links out of it aren't.
func TestReadFileIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "in"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in", "file"), []byte("open"), 0o600))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "in", "near")))
	require.NoError(t, os.Symlink(filepath.Join("..", "secret"), filepath.Join(dir, "in", "far")))
	root, err := os.OpenRoot(filepath.Join(dir, "in"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, root.Close()) })

	data, err := safeopen.ReadFileIn(root, "near", 100)
	require.NoError(t, err)
	assert.Equal(t, "open", string(data))
	for _, name := range []string{"far", "../secret"} {
		_, err = safeopen.ReadFileIn(root, name, 100)
		require.Error(t, err, name)
	}
	_, err = safeopen.ReadFileIn(root, ".", 100)
	var odd *safeopen.NotFileError
	require.ErrorAs(t, err, &odd)
}

func TestOpenFileMakesAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new")
	f, err := safeopen.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600, safeopen.NoFollow)
	require.NoError(t, err)
	_, err = f.WriteString("text")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	data, err := safeopen.ReadFile(path, 100, safeopen.NoFollow)
	require.NoError(t, err)
	assert.Equal(t, "text", string(data))
}
