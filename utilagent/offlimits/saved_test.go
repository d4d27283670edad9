package offlimits_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// What a command changes is put back even if nobody is there any more when it ends.
func TestWhatAKilledAgentLeftIsPutBack(t *testing.T) {
	t.Parallel()
	base := put(t, map[string]string{"w/.workflow/x.yaml": "mine"})
	dir, guard := filepath.Join(base, "w"), filepath.Join(base, "guard")
	shell(t, dir, `git init -q; git commit -q --allow-empty -m first`)
	before := state(t, dir)
	begin := func() *offlimits.Watched {
		w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir})
		require.NoError(t, err)
		require.NoError(t, w.Save(guard))
		shell(t, dir, `git config core.fsmonitor id; echo id > .git/hooks/post-commit; echo evil > .workflow/x.yaml`)
		return w
	}
	w := begin()
	changed, err := offlimits.Recover(guard)
	require.NoError(t, err)
	require.Empty(t, changed, "it still runs")
	changed, err = w.Restore()
	require.NoError(t, err)
	require.Len(t, changed.Undone, 3)
	require.Equal(t, before, state(t, dir))
	left, err := os.ReadDir(guard)
	require.NoError(t, err)
	require.Empty(t, left)

	w = begin()
	w.Abandon()
	changed, err = offlimits.Recover(guard)
	require.NoError(t, err)
	require.Contains(t, changed.Undone, filepath.Join(dir, ".git/config"))
	require.Equal(t, before, state(t, dir))
	changed, err = offlimits.Recover(guard)
	require.NoError(t, err)
	require.Empty(t, changed)
}
