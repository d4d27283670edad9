package project_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/prosetest"
)

// The nearest file within the repository counts, unless another user might have written it.
func TestFile(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	repo := filepath.Join(top, "repo")
	name := filepath.Join(".uwf", "config.yaml")
	for _, dir := range []string{"repo/.git", "repo/.uwf", "repo/sub/deep", "repo/near/.uwf", ".uwf"} {
		require.NoError(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	for _, dir := range []string{top, repo, filepath.Join(repo, "near")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	find := func(dir string, s project.Search) (string, []project.Ignored) {
		s.Dir = filepath.Join(repo, dir)
		path, ignored, err := s.File(name)
		require.NoError(t, err)
		return path, ignored
	}
	path, _ := find("sub/deep", project.Search{})
	require.Equal(t, filepath.Join(repo, name), path)
	path, _ = find("near", project.Search{})
	require.Equal(t, filepath.Join(repo, "near", name), path)

	shared := project.Search{Shared: func(path string, _ fs.FileInfo) bool { return strings.HasSuffix(path, "config.yaml") }}
	path, ignored := find("sub", shared)
	require.Empty(t, path)
	prosetest.Text(t, ignored[0].Reason)
	folder := project.Search{Shared: func(path string, _ fs.FileInfo) bool { return strings.HasSuffix(path, ".uwf") }}
	path, _ = find("sub", folder)
	require.Empty(t, path, "who can write the folder can replace the file")
	path, ignored = find("sub", project.Search{Owner: func(fs.FileInfo) (int, bool) { return 7, true }, Users: []int{0}})
	require.Empty(t, path)
	prosetest.Text(t, ignored[0].Reason)

	require.NoError(t, os.Remove(filepath.Join(repo, name)))
	path, _ = find("sub", project.Search{})
	require.Empty(t, path, "what is above the repository does not count")
}
