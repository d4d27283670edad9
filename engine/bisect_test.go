//go:build unix

package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// repository makes a git repository of the agents' working directory and returns its root.
func (w *world) repository() string {
	w.t.Helper()
	root, err := cwd.Real(w.dir)
	require.NoError(w.t, err)
	w.git("init -q; echo 0 > number; git add .; git commit -q -m first")
	return root
}

// git runs the git commands of a script; the first one is given without the leading "git".
func (w *world) git(script string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "sh", "-ec", "git "+script)
	cmd.Dir = w.dir
	cmd.Env = append(w.Reader.Env.Environ, "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u")
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, "%s: %s", script, out)
	return string(out)
}

// keptChain adds n steps with kept workspaces. Each step either writes its number to its files or leaves the
// files of the step before unchanged.
func (w *world) keptChain(r *rand.Rand, n int) (chain []protocol.Hash, numbers []int) {
	w.t.Helper()
	ctx, root := w.t.Context(), w.repository()
	repo, err := snapshot.Find(ctx, w.Reader.Env, root)
	require.NoError(w.t, err)
	id := w.start()
	spec, err := w.Files().SpecOf(repo, id)
	require.NoError(w.t, err)
	require.NoError(w.t, repo.Seed(ctx, spec.Git, true))
	require.NoError(w.t, repo.SeedIndex(spec))
	chain, numbers = []protocol.Hash{w.head(id)}, []int{0}
	first, err := snapshot.Take(ctx, w.Reader.Env, spec)
	require.NoError(w.t, err)
	for i := 1; i <= n; i++ {
		number := numbers[i-1]
		if r.IntN(5) > 0 {
			number = i
		}
		require.NoError(w.t, os.WriteFile(filepath.Join(root, "number"), fmt.Appendln(nil, number), 0o644))
		taken, err := snapshot.Take(ctx, w.Reader.Env, spec)
		require.NoError(w.t, err)
		t, err := thread.Open(ctx, w.Reader.Store, chain[i-1])
		require.NoError(w.t, err)
		b := w.Reader.Batch()
		text, err := b.Add(ctx, protocol.Text(fmt.Sprint("step ", i)))
		require.NoError(w.t, err)
		h, err := t.Append(ctx, b, protocol.Step{Role: "worker", Agent: "uwf-x", ExtractedBy: protocol.ByValue, Output: text, Detail: text, Cwd: root, Root: root, Files: &protocol.Files{Tree: taken.Tree, Before: first.Tree}})
		require.NoError(w.t, err)
		require.NoError(w.t, b.Commit(ctx))
		chain, numbers = append(chain, h), append(numbers, number)
	}
	return chain, numbers
}

// Bisect finds the step that introduced a fault, wherever it is in the range.
func TestBisectFindsWhoPlantedIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	r := rand.New(rand.NewPCG(17, 50))
	const steps = 25
	chain, numbers := w.keptChain(r, steps)
	before := w.git("worktree list; git for-each-ref; git status --porcelain")
	for found := 0; found < 50; found++ {
		planted := 1 + r.IntN(steps)
		for numbers[planted] != planted { // skip steps that changed nothing
			planted = 1 + r.IntN(steps)
		}
		good, bad := r.IntN(planted), planted+r.IntN(steps-planted+1)
		out, err := w.Files().Bisect(t.Context(), chain[good], chain[bad], worktree.BisectOptions{
			Argv: []string{"sh", "-c", fmt.Sprintf("echo left > left; test $(cat number) -lt %d", planted)},
		})
		require.NoError(t, err)
		require.Equal(t, chain[planted], out.First.Step)
		require.Equal(t, planted, out.First.Number)
		require.Empty(t, out.Unsure)
		require.LessOrEqual(t, len(out.Tried), 7)
	}
	require.Equal(t, before, w.git("worktree list; git for-each-ref; git status --porcelain"))
	w.git("--git-dir " + snapshot.Repo{Common: filepath.Join(w.dir, ".git")}.Store(w.Reader.Dirs.Git()) + " fsck --no-dangling; git fsck")
}
