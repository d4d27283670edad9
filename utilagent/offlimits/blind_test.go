package offlimits_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Whoever looks at a diff before running what a command has changed must see it.
func TestWhatGitIsToldToPassOver(t *testing.T) {
	t.Parallel()
	repository := func(t *testing.T) string {
		dir := t.TempDir()
		shell(t, dir, `git init -q; rm .git/info/exclude; mkdir sub; for f in a b Makefile; do echo x > $f; done; cp a sub/c; git add .; git commit -qm one
			git update-index --assume-unchanged a; git worktree add -q tree 2>/dev/null`)
		return dir
	}
	for _, c := range []struct {
		name, script string
		hides        []string
	}{
		{"nothing", "echo y > b; git add b; git commit -qm two; git stash list; git update-index --refresh || true", nil},
		{"assumed", "git update-index --assume-unchanged Makefile; echo evil >> Makefile", []string{"Makefile"}},
		{"skipped", "git update-index --skip-worktree sub/c b", []string{"b", "sub/c"}},
		{"an index of names that are short", "git update-index --index-version 4 --assume-unchanged sub/c", []string{"sub/c"}},
		{"an index in two parts", "git update-index --split-index; git update-index --skip-worktree b", []string{".git/index: a file"}}, // in one part of it, or in both, as git likes
		{"a file that is gone", "git update-index --skip-worktree b; rm b", nil},
		{"a linked work tree", "cd tree; git update-index --skip-worktree b", []string{".git/worktrees/tree/index: b"}},
		{"another commit in the place of one", "git replace HEAD $(git commit-tree -m evil HEAD^{tree})", []string{".git/refs/replace/"}},
		{"packed", "git replace HEAD $(git commit-tree -m evil HEAD^{tree}); git pack-refs --all", []string{".git/packed-refs: refs/replace/"}},
		{"objects of elsewhere", "echo /evil > .git/objects/info/alternates", []string{".git/objects/info/alternates: /evil"}},
		{"a repository inside", "git init -q in; cd in; echo x > f; git add .; git commit -qm one; git update-index --skip-worktree f", []string{"in/f"}},
		{"shown again", "git update-index --no-assume-unchanged a", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := repository(t)
			changes := watching(t, dir, c.script)
			files := slices.CompactFunc(slices.Clone(changes.Hiding), func(a, b string) bool {
				a, _, _ = strings.Cut(a, " (")
				return strings.HasPrefix(b, a+" (")
			})
			require.Len(t, files, len(c.hides), "%q", changes.Hiding)
			for i, want := range c.hides {
				require.Contains(t, changes.Hiding[i], want)
				require.Contains(t, changes.String(), want)
			}
			require.Empty(t, changes.Undone)
		})
	}
	for _, setting := range []string{"core.excludesFile .x", "core.attributesFile .x", "status.showUntrackedFiles no", "diff.ignoreSubmodules all", "submodule.sub.ignore all"} {
		dir := repository(t)
		require.Equal(t, []string{".git/config"}, watching(t, dir, "git config "+setting).Undone, setting)
	}
	dir := repository(t)
	require.Equal(t, []string{".git/info/exclude"}, watching(t, dir, "mkdir -p .git/info; echo evil.sh > .git/info/exclude").Undone)
	require.Empty(t, watching(t, dir, "mkdir -p .git/info; echo '# none' > .git/info/exclude").Undone)
}

// After a kill the next agent tells it.
func TestWhatAKilledAgentHid(t *testing.T) {
	t.Parallel()
	dir, guard := t.TempDir(), t.TempDir()
	shell(t, dir, "git init -q; echo x > a; git add .; git commit -qm one")
	w, err := offlimits.Keep(guard, offlimits.List{}, offlimits.Place{Workspace: dir})
	require.NoError(t, err)
	shell(t, dir, "git update-index --assume-unchanged a")
	pending, err := offlimits.Pending(guard)
	require.NoError(t, err)
	require.Empty(t, pending, "its command still runs")
	w.Abandon()
	pending, err = offlimits.Pending(guard)
	require.NoError(t, err)
	require.Equal(t, []string{dir}, pending)
	changes, err := offlimits.Recover(guard)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a") + " (assume-unchanged)"}, changes.Hiding)
	left, err := filepath.Glob(filepath.Join(guard, "*.baseline*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A name may be anything: none ends what a person is told, nor adds to it.
func TestNamesAreToldWhole(t *testing.T) {
	t.Parallel()
	for _, changes := range []offlimits.Changes{
		{Undone: []string{"a, b", "x\nhint: e/.workflow", "y/.git/config", `"z`}},
		{Lost: []string{"a, b", "x\nhint: e/.workflow", "y/.git/config", `"z`}},
		{Hiding: []string{"a, b", "x\nhint: e/.workflow", "y/.git/config", `"z`}},
		{Unseen: []string{"a, b", "x\nhint: e/.workflow", "y/.git/config", `"z`}},
	} {
		require.Contains(t, changes.String(), `: "a, b", "x\nhint: e/.workflow", y/.git/config, "\"z"`)
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = "name"
	}
	require.Contains(t, offlimits.Changes{Undone: many}.String(), "and 10 more")
}
