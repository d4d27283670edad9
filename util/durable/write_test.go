package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

func TestWriteFileReplacesWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "threads.yaml")
	for _, content := range []string{"first, and longer", "second"} {
		require.NoError(t, durable.WriteFile(durable.OS(), path, []byte(content), 0o644))
		require.Equal(t, content, read(t, path))
	}
	require.Equal(t, []string{"threads.yaml"}, names(t, dir))
}

func TestWriteFileFollowsLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles", "config.yaml"), filepath.Join(dir, "config.yaml")
	require.NoError(t, os.Mkdir(filepath.Dir(target), 0o755))
	require.NoError(t, os.WriteFile(target, []byte("old"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, durable.WriteFile(durable.OS(), link, []byte("new"), 0o600))
	require.Equal(t, "new", read(t, target))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink)
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o755))
	err := durable.WriteFile(durable.OS(), path, []byte("x"), 0o644)
	require.ErrorContains(t, err, path)
	require.Equal(t, []string{"taken"}, names(t, dir))

	missing := filepath.Join(dir, "no", "such")
	err = durable.WriteFile(durable.OS(), missing, nil, 0o644)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, missing)
}

func TestAppendFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	require.NoError(t, durable.AppendFile(durable.OS(), path, []byte("one\n"), 0o644))
	require.NoError(t, durable.AppendFile(durable.OS(), path, []byte("two\n"), 0o644))
	require.Equal(t, "one\ntwo\n", read(t, path))
	require.NoError(t, durable.OS().Truncate(path, 4))
	require.Equal(t, "one\n", read(t, path))
}

// A file with content must have a durable name, even if its creator was killed: the directory is flushed
// before the first byte is written.
func TestAppendFileNamesBeforeItWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "history.jsonl")
	f := failing{FS: durable.OS(), syncDir: errors.New("no")}
	require.Error(t, durable.AppendFile(f, path, []byte("one\n"), 0o644))
	require.Empty(t, read(t, path))
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	require.NoError(t, durable.MkdirAll(durable.OS(), deep, 0o755))
	require.NoError(t, durable.MkdirAll(durable.OS(), deep, 0o755))
	require.DirExists(t, deep)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	err := durable.MkdirAll(durable.OS(), filepath.Join(file, "x"), 0o755)
	require.ErrorContains(t, err, file)
}

func TestWriteTempNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "node.bin")
	seen := map[string]bool{}
	for _, flush := range []durable.Flush{durable.NoFlush, durable.FullFlush} {
		temp, err := durable.OS().WriteTemp(path, []byte("data"), 0o444, flush)
		require.NoError(t, err)
		require.Equal(t, dir, filepath.Dir(temp))
		require.True(t, durable.IsTemp(temp))
		require.Equal(t, "data", read(t, temp))
		require.False(t, seen[temp])
		seen[temp] = true
		require.NoError(t, durable.OS().SyncFile(temp))
		require.NoError(t, durable.OS().Remove(temp))
	}
	require.False(t, durable.IsTemp(path))
}

// failing is a disk on which some operations fail.
type failing struct {
	durable.FS
	syncDir error
	rename  error
}

func (f failing) SyncDir(path string) error {
	if f.syncDir != nil {
		return f.syncDir
	}
	return f.FS.SyncDir(path)
}

func (f failing) Rename(from, to string) error {
	if f.rename != nil {
		return f.rename
	}
	return f.FS.Rename(from, to)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestReplaceJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "known.json")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, durable.ReplaceJSON(durable.OS(), path, text))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, strconv.Quote(text)+"\n", string(data))
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
	require.Error(t, durable.ReplaceJSON(durable.OS(), path, "third"))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left behind")
}
