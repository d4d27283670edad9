//go:build unix

package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// The next process completes a restore that was killed at any point, and the user's repository is unchanged.
func TestKilledRestores(t *testing.T) {
	t.Parallel()
	w := repository(t)
	for n := range 400 {
		w.write(fmt.Sprintf("many/%d", n), strings.Repeat("x", n))
	}
	trees := [2]protocol.Tree{w.take().Tree}
	for n := range 400 {
		w.write(fmt.Sprintf("many/%d", n), strings.Repeat("y", n+1))
	}
	w.write("a", "other\n")
	trees[1] = w.take().Tree
	user := w.user()
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 12 {
		to := trees[n%2]
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(w.env.Environ, "FILES_TEST_SPEC="+w.spec.String(), "FILES_TEST_TO="+string(to))
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(10+r.IntN(90))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		w.spec.Tree = ""
		for _, left := range []string{".graft", ".graft.lock"} { // left by a git that was killed later
			require.NoError(t, os.WriteFile(w.spec.Index+left, nil, 0o600))
		}
		w.write("mine", fmt.Sprint(n))
		got, _, err := snapshot.Finish(t.Context(), w.env, w.spec, trees[(n+1)%2], to)
		require.NoError(t, err)
		require.Equal(t, got, w.take().Tree)
		require.Equal(t, fmt.Sprint(n), w.sh("cat mine"))
		require.NoError(t, os.Remove(filepath.Join(w.root, "mine")))
		require.Equal(t, to, w.take().Tree)
		require.Equal(t, user, w.user())
	}
}

// The next process completes a snapshot that was killed at any point, and neither git directory is damaged,
// even if the user runs git at the same time.
func TestKilledSnapshots(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.take()
	r := rand.New(rand.NewPCG(5, 6))
	killed := 0
	for n := range 40 {
		for range 30 {
			w.write(fmt.Sprintf("many/%d", r.IntN(60)), fmt.Sprint(n, r.Int()))
		}
		if n%8 == 7 {
			w.sh("git add -A; git commit -q -m step; git gc -q --prune=now")
		}
		user := w.user()
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(w.env.Environ, "FILES_TEST_SPEC="+w.spec.String())
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(5+r.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		require.Equal(t, user, w.user())
		w.spec.Tree = ""
		require.Equal(t, w.added(), w.take().Tree)
	}
	require.Positive(t, killed)
	w.sh("git fsck --no-dangling; git --git-dir " + w.spec.Git + " fsck --no-dangling")
}

// If creating, filling or removing a worktree is killed, the user's repository stays intact, and the next
// process completes the operation.
func TestKilledWorktrees(t *testing.T) {
	t.Parallel()
	w := repository(t)
	tree := w.take().Tree
	dir := filepath.Join(w.dir, "trees")
	require.NoError(t, os.Mkdir(dir, 0o755))
	before := w.user()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	add := func(path string) {
		require.NoError(t, w.repo.AddWorktree(t.Context(), path, w.repo.Head, ""))
	}
	add(one)
	w.sh("echo initializing > .git/worktrees/one/locked; printf '%040d\\n' 0 > .git/worktrees/one/HEAD; rm .git/worktrees/one/index; ! git fsck 2> /dev/null")
	require.NoError(t, w.repo.RemoveWorktree(t.Context(), one, "", ""))
	add(two)
	w.sh("git fsck --no-dangling; mkdir .git/worktrees/three; echo initializing > .git/worktrees/three/locked; touch .git/worktrees/three/gitdir; mkdir .git/worktrees/four")
	require.NoError(t, w.repo.RemoveWorktree(t.Context(), filepath.Join(dir, "three"), "", ""))
	add(filepath.Join(dir, "four"))
	w.sh("test -f .git/worktrees/four/gitdir; test ! -e .git/worktrees/three")
	require.NoError(t, w.repo.RemoveWorktree(t.Context(), filepath.Join(dir, "four"), "", ""))
	require.NoDirExists(t, one)

	repo, err := snapshot.Find(t.Context(), w.env, two)
	require.NoError(t, err)
	s := w.spec
	s.Root, s.Index, s.Tree, s.Ref = two, filepath.Join(w.dir, "uwf", "index2"), "", "refs/uwf/two"
	record := s.Index + ".restore"
	require.NoError(t, w.repo.PlanWorktree(tree, w.repo.Head, "", record))
	w.sh("cp a " + two) // the rest is missing
	_, err = snapshot.Begin(t.Context(), w.env, repo, &s)
	require.NoError(t, err)
	filled, _, err := snapshot.FinishWorktree(t.Context(), w.env, s, record)
	require.NoError(t, err)
	require.Equal(t, tree, filled)
	require.FileExists(t, filepath.Join(two, "d/b"))
	require.NoFileExists(t, record)

	require.NoError(t, os.Rename(two, filepath.Join(dir, ".gone-two")))
	w.sh("git fsck --no-dangling; git worktree list | grep trees/two")
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".gone-five"), 0o700)) // killed before git's record was removed
	w.sh("echo gitdir: $PWD/.git/worktrees/five > ../trees/.gone-five/.git")
	w.sh("touch .git/packed-refs.lock .git/packed-refs.new; mkdir .git/worktrees/five; touch .git/worktrees/five/HEAD")
	require.NoError(t, snapshot.FinishRemovals(t.Context(), dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, filepath.Join(w.repo.Common, "worktrees", "five"))
	require.Equal(t, before, w.user())
}
