package discover_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/discover"
	proj "github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/prosetest"
)

// tree creates files (and, for names ending in a slash, directories) and returns their parent.
func tree(t *testing.T, paths ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, p := range paths {
		full := filepath.Join(root, filepath.FromSlash(p))
		if p[len(p)-1] == '/' {
			require.NoError(t, os.MkdirAll(full, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, nil, 0o644))
	}
	return root
}

// foundIn lists the workflows found from a directory of a tree, as "name path".
func foundIn(t *testing.T, root, dir string) []string {
	t.Helper()
	found, ignored, err := discover.Workflows(proj.Search{Dir: filepath.Join(root, filepath.FromSlash(dir))})
	require.NoError(t, err)
	require.Empty(t, ignored)
	list := []string{}
	for _, f := range found {
		rel, err := filepath.Rel(root, f.Path)
		require.NoError(t, err)
		list = append(list, f.Name+" "+filepath.ToSlash(rel))
	}
	return list
}

func TestDiscoverFindsAllForms(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/", ".workflow/b.yaml", ".workflow/a.yml", ".workflow/folder/index.yaml", ".workflow/other/index.yml",
		".workflow/README.md", ".workflow/index.yaml", ".workflow/.hidden.yaml", ".workflow/empty/", ".workflow/c.yaml/notes.txt", ".workflows/d.yaml")
	require.Equal(t, []string{
		"a .workflow/a.yml", "b .workflow/b.yaml", "folder .workflow/folder/index.yaml", "other .workflow/other/index.yml",
		"d .workflows/d.yaml",
	}, foundIn(t, root, "."))
}

func TestDiscoverPrecedence(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/",
		".workflow/file-before-folder.yml", ".workflow/file-before-folder/index.yaml",
		".workflow/yaml-before-yml.yml", ".workflow/yaml-before-yml.yaml",
		".workflow/index-too/index.yml", ".workflow/index-too/index.yaml",
		".workflow/one-before-the-other/index.yml", ".workflows/one-before-the-other.yaml",
		"sub/.workflows/near-before-far.yml", ".workflow/near-before-far.yaml",
	)
	require.Equal(t, []string{
		"near-before-far sub/.workflows/near-before-far.yml",
		"file-before-folder .workflow/file-before-folder.yml",
		"index-too .workflow/index-too/index.yaml",
		"one-before-the-other .workflow/one-before-the-other/index.yml",
		"yaml-before-yml .workflow/yaml-before-yml.yaml",
	}, foundIn(t, root, "sub/deeper"))
}

func TestDiscoverStopsAtTheRepository(t *testing.T) {
	t.Parallel()
	root := tree(t, ".workflow/outside.yaml",
		"repo/.git/", "repo/.workflow/root.yaml", "repo/pkg/.workflow/inner.yaml",
		"worktree/.git", "worktree/.workflows/wt.yaml", "worktree/x/")
	require.Equal(t, []string{"inner repo/pkg/.workflow/inner.yaml", "root repo/.workflow/root.yaml"}, foundIn(t, root, "repo/pkg"))
	require.Equal(t, []string{"wt worktree/.workflows/wt.yaml"}, foundIn(t, root, "worktree/x"), "a .git file is a root as well")
}

func TestDiscoverWithoutWorkflows(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/", ".workflow", "sub/")
	require.Empty(t, foundIn(t, root, "sub"), "a file called .workflow is no folder")
	require.Empty(t, foundIn(t, root, "gone/and/gone"), "the directory need not exist")
	_, _, err := discover.Workflows(proj.Search{Dir: "relative"})
	prosetest.Error(t, err)
}

// The home directory isn't a project.
func TestDiscoverStopsAtTheHome(t *testing.T) {
	t.Parallel()
	root := tree(t, ".workflow/above.yaml", "home/.workflow/own.yaml", "home/.git/", "home/notes/.workflow/a.yaml", "home/notes/sub/", "beside/sub/")
	search := func(dir string) []string {
		found, _, err := discover.Workflows(proj.Search{Dir: filepath.Join(root, filepath.FromSlash(dir)), Home: filepath.Join(root, "home")})
		require.NoError(t, err)
		var names []string
		for _, f := range found {
			names = append(names, f.Name)
		}
		return names
	}
	require.Equal(t, []string{"a"}, search("home/notes/sub"))
	require.Equal(t, []string{"own"}, search("home"), "who works right there")
	require.Equal(t, []string{"above"}, search("beside/sub"))
	require.NoError(t, os.Remove(filepath.Join(root, "home", ".git")))
	require.Equal(t, []string{"own"}, search("home"))
}

// Anyone who can create a parent folder, or a file in the folder, controls what runs.
func TestDiscoverPassesOverWhatOthersOwn(t *testing.T) {
	t.Parallel()
	root := tree(t, "theirs/.workflow/above.yaml", "theirs/mine/.workflow/a.yaml", "theirs/mine/.workflow/alien.yaml", "theirs/mine/.workflow/alien/index.yaml",
		"theirs/mine/sub/.workflows/b.yaml", "theirs/mine/sub/.workflow/c.yaml", "theirs/mine/sub/deep/")
	const me, other, admin = 7, 8, 0
	owners := map[string]int{"theirs": other, "alien.yaml": other, "alien": other, ".workflow": me, ".workflows": me, "a.yaml": admin}
	s := proj.Search{
		Dir: filepath.Join(root, "theirs", "mine", "sub", "deep"), Users: []int{me, admin},
		Owner: func(info fs.FileInfo) (int, bool) {
			if id, ok := owners[info.Name()]; ok {
				return id, true
			}
			return me, true
		},
	}
	names := func() (list, passed []string) {
		found, ignored, err := discover.Workflows(s)
		require.NoError(t, err)
		for _, f := range found {
			list = append(list, f.Name)
		}
		for _, i := range ignored {
			rel, err := filepath.Rel(root, i.Path)
			require.NoError(t, err)
			passed = append(passed, filepath.ToSlash(rel)+" "+i.Reason)
		}
		return list, passed
	}
	list, passed := names()
	require.Equal(t, []string{"c", "b", "a"}, list)
	prosetest.Text(t, passed)

	s.Shared = func(path string, info fs.FileInfo) bool {
		return info.Name() == ".workflow" && filepath.Dir(path) == filepath.Join(root, "theirs", "mine")
	}
	list, passed = names()
	require.Equal(t, []string{"c", "b"}, list)
	prosetest.Text(t, passed)
	s.Shared = nil

	owners[".workflow"] = other
	list, passed = names()
	require.Equal(t, []string{"b"}, list)
	prosetest.Text(t, passed)
}
