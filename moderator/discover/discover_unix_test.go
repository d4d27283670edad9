//go:build unix

package discover_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/discover"
	proj "github.com/united-workforce/uwf/util/project"
)

func TestDiscoverFollowsLinks(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/", "shared/flow.yaml", "shared/folder/index.yaml", ".workflow/")
	for link, to := range map[string]string{"a.yaml": "../shared/flow.yaml", "b": "../shared/folder", "nowhere.yaml": "../gone"} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, ".workflow", link)))
	}
	require.Equal(t, []string{"a .workflow/a.yaml", "b .workflow/b/index.yaml"}, foundIn(t, root, "."))
}

// A repository can contain arbitrary links, and git preserves them.
func TestDiscoverIgnoresLinksThatLeadOut(t *testing.T) {
	t.Parallel()
	root := tree(t, "secret.yaml", "folder/index.yaml", "repo/.git/", "repo/.workflow/ok.yaml", "repo/sub/", "plain/.workflow/ok.yaml")
	for _, dir := range []string{"repo", "plain"} {
		for link, to := range map[string]string{
			".workflow/a.yaml": "../../secret.yaml", ".workflow/b.yaml": filepath.Join(root, "secret.yaml"), ".workflow/c": "../../folder",
			".workflow/zero.yaml": "/dev/zero", ".workflows": "../folder", ".workflow/loop.yaml": "loop.yaml",
		} {
			require.NoError(t, os.Symlink(to, filepath.Join(root, dir, link)))
		}
		found, ignored, err := discover.Workflows(proj.Search{Dir: filepath.Join(root, dir)})
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, filepath.Join(root, dir), found[0].Project)
		var names []string
		for _, i := range ignored {
			why := "is a symbolic link out of the project"
			if filepath.Base(i.Path) == "loop.yaml" {
				why = "is a symbolic link in a loop"
			}
			require.Equal(t, why, i.Reason)
			names = append(names, filepath.Base(i.Path))
		}
		require.Equal(t, []string{"a.yaml", "b.yaml", "c", "loop.yaml", "zero.yaml", ".workflows"}, names)
	}
}
