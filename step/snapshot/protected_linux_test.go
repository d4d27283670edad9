package snapshot_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/usertest"
)

// Git only warns if it can't delete a file, and it stops halfway if it can't replace one.
func TestProtectedDirectories(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	w := repository(t)
	first := w.take().Tree
	w.sh(`echo more >> d/b; mkdir -p m/v/x/y s; echo x > m/v/x/y/z; echo x > m/w; echo s > s/s; chmod 500 m/v/x/y m/v/x m/v m d; chmod 2551 s`)
	second := w.take().Tree
	w.restore(first)
	require.NoFileExists(t, filepath.Join(w.root, "m"))
	require.NoFileExists(t, filepath.Join(w.root, "s"))
	w.sh(`mkdir m; chmod 500 m`)
	w.restore(second)
	w.sh(`chmod -R u+w .`)
}

// Nothing is written if another user owns a directory.
func TestForeignDirectories(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	w := newWorld(t)
	w.root = usertest.Foreign(t)
	w.sh(`git init -q; printf '/*\n!/a\n' > .git/info/exclude; echo 1 > a; git add a; git commit -q -m first`)
	first := w.take().Tree
	w.sh(`echo '!/foreign' >> .git/info/exclude; echo 2 > a`)
	require.NoError(t, w.repo.Seed(t.Context(), w.spec.Git, false))
	second := w.take()
	require.NotEqual(t, first, second.Tree)
	var protected *snapshot.ProtectedError
	require.ErrorAs(t, w.change("", first), &protected)
	require.Equal(t, []string{filepath.Join(w.root, "foreign")}, protected.Dirs)
	require.Equal(t, "2\n", w.sh("cat a"))
}

// Go's module cache has no write permissions.
func TestRemoveProtectedWorktrees(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	w := repository(t)
	w.take()
	commit, ok := w.repo.Commit(t.Context(), "HEAD")
	require.True(t, ok)
	below := filepath.Join(w.dir, "worktrees")
	for _, name := range []string{"removed", "interrupted"} {
		path := filepath.Join(below, name)
		require.NoError(t, w.repo.AddWorktree(t.Context(), path, commit, ""))
		w.sh(`mkdir -p ` + path + `/m/x; echo x > ` + path + `/m/x/y; chmod 500 ` + path + `/m/x; chmod 0 ` + path + `/m`)
	}
	require.NoError(t, w.repo.RemoveWorktree(t.Context(), filepath.Join(below, "removed"), "", ""))
	require.NoError(t, os.Rename(filepath.Join(below, "interrupted"), filepath.Join(below, ".gone-interrupted")))
	require.NoError(t, snapshot.FinishRemovals(t.Context(), below))
	left, err := os.ReadDir(below)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDubiousOwnership(t *testing.T) {
	t.Parallel()
	w := repository(t)
	out, err := exec.CommandContext(t.Context(), "env", "GIT_TEST_ASSUME_DIFFERENT_OWNER=1", "HOME="+w.dir, "git", "-C", w.root, "status").CombinedOutput()
	if err == nil {
		t.Skip("this git trusts every owner")
	}
	require.Equal(t, "fatal: detected dubious ownership in repository at '"+w.root+"'; to allow it: git config --global --add safe.directory "+
		w.root, snapshot.LastLine(out))
}
