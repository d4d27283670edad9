//go:build unix

package workflow_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiscoverFollowsLinks(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/", "shared/flow.yaml", "shared/folder/index.yaml", ".workflow/")
	for link, to := range map[string]string{"a.yaml": "../shared/flow.yaml", "b": "../shared/folder", "nowhere.yaml": "../gone"} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, ".workflow", link)))
	}
	require.Equal(t, []string{"a .workflow/a.yaml", "b .workflow/b/index.yaml"}, discover(t, root, "."))
}
