package offlimits_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// plants are a repository that starts a program and a workflow.
const plants = `mkdir -p zz docs/a/.workflow; git init -q zz/deep; git -C zz/deep config core.fsmonitor id; echo evil > docs/a/.workflow/x.yaml; `

// What a command hides behind many directories is found, also when they have gone.
func TestAFloodHidesNothing(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"f": ""})
	shell(t, dir, "git init -q")
	w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir})
	require.NoError(t, err)
	shell(t, dir, "mkdir flood; cd flood; seq 21000 | xargs mkdir; cd ..; "+plants)
	changed, err := w.Restore()
	require.NoError(t, err)
	require.Equal(t, []string{"docs/a/.workflow", "zz/deep/.git/config"}, changed.Undone)
	require.Empty(t, changed.Unseen)

	elsewhere := put(t, nil) // where nobody looks, such as the depths of a cache
	shell(t, elsewhere, plants)
	w, err = offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir, Dirs: w.Dirs()})
	require.NoError(t, err)
	require.Empty(t, w.Unseen(), "what was looked at once is looked at again")
	shell(t, dir, "rm -r zz; mv "+elsewhere+"/zz zz; rm -r flood")
	changed, err = w.Restore()
	require.NoError(t, err)
	require.Equal(t, []string{"zz/deep/.git/config"}, changed.Undone)
}

// If it is too much to be looked through, what was there before is not forgotten: the
// next look finds what was made meanwhile, and so does the next agent.
func TestALargerFloodHidesNothingForLong(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		dir, guard := put(t, map[string]string{"f": ""}), t.TempDir()
		shell(t, dir, "git init -q")
		w, err := offlimits.Keep(guard, offlimits.WithNewDirs(100), offlimits.Place{Workspace: dir})
		require.NoError(t, err)
		shell(t, dir, "mkdir flood; cd flood; seq 200 | xargs mkdir; cd ..; "+plants)
		changed, err := w.Restore()
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, "flood"), changed.Unseen[0])
		require.Contains(t, changed.String(), filepath.Join(dir, "flood"))
		shell(t, dir, "rm -r flood")
		if killed {
			w.Abandon()
			changed, err = offlimits.Recover(guard)
			require.NoError(t, err)
			require.Equal(t, []string{filepath.Join(dir, "docs/a/.workflow"), filepath.Join(dir, "zz/deep/.git/config")}, changed.Undone)
		} else {
			changed, err = w.Restore()
			require.NoError(t, err)
			require.Equal(t, []string{"docs/a/.workflow", "zz/deep/.git/config"}, changed.Undone)
		}
		require.Empty(t, changed.Unseen)
		changed, err = offlimits.Recover(guard)
		require.NoError(t, err)
		require.Empty(t, changed, "it is over")
	}
}

// In a workspace that was too large from the beginning, what is new is judged where
// nobody has looked before, and what is the user's own stays.
func TestWhatIsNewInALargeWorkspace(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"zz/old/f": "", "zz/docs/.workflow/mine.yaml": "mine"})
	shell(t, dir, `cd zz/old; git init -q; git config alias.x '!id'; echo mine > .git/hooks/mine; mkdir ../../flood; cd ../../flood; seq 20100 | xargs mkdir`)
	changed := watching(t, dir, `git -C zz/old commit -q --allow-empty -m x; mkdir -p zz/new; cd zz/new; git init -q; git config core.fsmonitor id; echo evil > ../docs/.workflow/evil.yaml`)
	require.Equal(t, []string{"zz/docs/.workflow/evil.yaml", "zz/new/.git/config"}, changed.Undone)
	require.Equal(t, "!id\nmine\nmine", shell(t, dir, `git -C zz/old config alias.x; cat zz/old/.git/hooks/mine; printf %s "$(cat zz/docs/.workflow/mine.yaml)"`))
}
