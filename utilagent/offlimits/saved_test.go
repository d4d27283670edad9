package offlimits_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
		w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: dir})
		require.NoError(t, err)
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
	left, err := filepath.Glob(filepath.Join(guard, "*.baseline*"))
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

// Two commands overlap in a repository: what the first one has planted when the second one
// begins is not what was there before.
func TestWhatAnotherCommandHasPlantedIsNotPutBack(t *testing.T) {
	t.Parallel()
	for _, c := range plantings() {
		if c.changed == ".git/config" && c.name != "config" {
			continue // one of its settings is enough here
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, guard := guardedRepository(t), t.TempDir()
			before := state(t, dir)
			keep := func() *offlimits.Watched {
				w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: dir})
				require.NoError(t, err)
				return w
			}
			end := func(w *offlimits.Watched) {
				_, err := w.Restore()
				require.NoError(t, err)
			}
			first := keep()
			shell(t, dir, c.script)
			second := keep()
			end(first)
			end(second)
			require.Equal(t, before, tidied(c, state(t, dir)))
			shell(t, dir, "git config core.pager cat") // nobody runs: a person's
			after := state(t, dir)
			end(keep())
			require.Equal(t, after, state(t, dir))
		})
	}
}

// A worktree of a thread shares the git directory of its repository with others.
func TestWorktreesShareOneBaseline(t *testing.T) {
	t.Parallel()
	base, guard := t.TempDir(), t.TempDir()
	shell(t, base, "git init -q r; git -C r commit -q --allow-empty -m first; git -C r worktree add -q ../a; git -C r worktree add -q ../b")
	git := filepath.Join(base, "r/.git")
	keep := func(name string) *offlimits.Watched {
		w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: filepath.Join(base, name), Beside: []string{git}})
		require.NoError(t, err)
		return w
	}
	first := keep("a")
	shell(t, base, "echo id > r/.git/hooks/pre-commit; git -C a config core.fsmonitor id")
	second := keep("b")
	_, err := first.Restore()
	require.NoError(t, err)
	shell(t, base, "echo id > r/.git/hooks/pre-commit")
	third := keep("a") // the first one has ended, and what it began with still counts
	for _, w := range []*offlimits.Watched{second, third} {
		_, err := w.Restore()
		require.NoError(t, err)
	}
	require.NoFileExists(t, filepath.Join(git, "hooks/pre-commit"))
	require.NotContains(t, shell(t, base, "cat r/.git/config"), "fsmonitor")
}

// A second name for git's settings, or a descriptor of them that another command got, leads
// nowhere once the command has ended.
func TestNothingLeadsToGitsSettings(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // nothing is confined
	}
	dir := guardedRepository(t)
	before := state(t, dir)
	w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir})
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join(dir, ".git/config"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	elsewhere := t.TempDir()
	shell(t, dir, "ln .git/config "+elsewhere+"/a; ln .git/hooks/mine "+elsewhere+"/b; ln .workflow/x.yaml "+elsewhere+"/c")
	changed, err := w.Restore()
	require.NoError(t, err)
	require.Empty(t, changed)
	shell(t, elsewhere, "for f in a b c; do echo evil >> $f; done")
	_, err = f.WriteString("evil")
	require.NoError(t, err)
	require.Equal(t, before, state(t, dir))
}

// A command whose init has the lock is not taken for ended when the one who kept the baseline is
// killed.
func TestACommandThatRunsOnKeepsItsBaseline(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // nothing is confined
	}
	dir, guard := guardedRepository(t), t.TempDir()
	w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: dir})
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "cat")
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	command.ExtraFiles = []*os.File{w.Lock()}
	require.NoError(t, command.Start())
	w.Abandon()
	shell(t, dir, "git config core.fsmonitor id")

	pending, err := offlimits.Pending(guard)
	require.NoError(t, err)
	require.Empty(t, pending)
	changed, err := offlimits.Recover(guard)
	require.NoError(t, err)
	require.Empty(t, changed, "it still runs")

	require.NoError(t, stdin.Close())
	require.NoError(t, command.Wait())
	changed, err = offlimits.Recover(guard)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, ".git/config")}, changed.Undone)
}

// A directory that a command has closed hides nothing, and what cannot be restored is not forgotten.
func TestAClosedRepositoryHidesNothing(t *testing.T) {
	t.Parallel()
	const plant = "echo id > .git/hooks/pre-commit; git config core.fsmonitor id; "
	for name, script := range map[string]string{
		"the repository": plant + "chmod 0 .git",
		"search only":    plant + "chmod 111 .git",
		"not writable":   plant + "chmod 555 .git/hooks .git",
		"an inner one":   "git -C inner config core.fsmonitor id; chmod 0 inner/.git",
		"the workspace":  plant + "chmod 0 .",
		"names only":     plant + "chmod 400 .",
		"names of one":   "git init -q n; git -C n config core.fsmonitor id; chmod 400 n",
		"below a hook":   "mkdir -p .git/hooks/pre-commit/a; : > .git/hooks/pre-commit/a/f; chmod 0 .git/hooks/pre-commit/a",
		"bare":           "git init -q --bare b; echo id > b/hooks/pre-commit; git -C b config core.fsmonitor id; chmod 500 b/hooks b",
		"a new one":      "git init -q n; git -C n config core.fsmonitor id; chmod 0 n/.git",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, guard := guardedRepository(t), t.TempDir()
			w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: dir})
			require.NoError(t, err)
			shell(t, dir, script)
			_, err = w.Restore()
			require.NoError(t, err)
			shell(t, dir, "if grep -rl fsmonitor --include=config .; then exit 1; fi; test ! -e .git/hooks/pre-commit; test ! -e b/hooks/pre-commit")
		})
	}
}

// What the user has set is not lost with what a command adds to it.
func TestTheUsersSettingsStay(t *testing.T) {
	t.Parallel()
	const crowd = "for r in a b c; do mkdir -p $r/.git/info; (cd $r/.git/info; seq 7000 | xargs touch); done; "
	for name, test := range map[string]struct{ before, script, config string }{
		"moved and changed": {"", "mv inner q; git -C q remote add origin https://example.com/x; git -C q config core.fsmonitor id", "q/.git/config"},
		"moved beside":      {"", "mv .git g; printf 'gitdir: g\\n' > .git; git config core.fsmonitor id", "g/config"},
		"in a crowd":        {crowd + "mkdir -p x/y; mv inner x/y/z;", ":", "x/y/z/.git/config"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, guard := guardedRepository(t), t.TempDir()
			shell(t, dir, "git config alias.mine '!true'; git -C inner config alias.mine '!true'; "+test.before)
			w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: dir})
			require.NoError(t, err)
			shell(t, dir, test.script)
			_, err = w.Restore()
			require.NoError(t, err)
			shell(t, dir, "grep mine "+test.config+" && ! grep fsmonitor "+test.config)
		})
	}
}
