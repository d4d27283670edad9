package project_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A file is read up to its limit, and only if it counts; see also the tests of moderator/workflow.
func TestBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.md": "0123456789", "theirs.md": "x", "open.md": "x", "empty.md": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.md"), 0o700))
	s := project.Search{
		Dir: dir, Users: []int{1},
		Owner: func(info fs.FileInfo) (int, bool) {
			if info.Name() == "theirs.md" {
				return 2, true
			}
			return 1, true
		},
		Shared: func(path string, info fs.FileInfo) bool { return filepath.Base(path) == "open.md" },
	}
	files, err := s.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	text, size, ok, err := files.Begin("a.md", 4)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "0123", string(text))
	require.EqualValues(t, 10, size)
	_, size, ok, err = files.Begin("empty.md", 4)
	require.NoError(t, err)
	require.True(t, ok && size == 0)
	for _, name := range []string{"none.md", "theirs.md", "open.md", "folder.md"} {
		_, _, ok, err := files.Begin(name, 4)
		require.NoError(t, err)
		require.False(t, ok, name)
	}
	var why []string
	for _, i := range files.Ignored {
		why = append(why, filepath.Base(i.Path)+" "+i.Reason[:12])
	}
	prosetest.Text(t, why)
}

// From resolves the real path of the directory.
func TestFrom(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "repository", ".git"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "repository", "a"), 0o700))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join("repository", "a"), link))
	s := project.From(env.Env{}, link)
	dirs, repository, err := s.Dirs()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "repository"), repository)
	require.Equal(t, []string{filepath.Join(dir, "repository", "a"), repository}, dirs)
	root, err := s.Root()
	require.NoError(t, err)
	require.Equal(t, repository, root)
}
