package box_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// The worktree of another thread may be removed while a sandbox is set up, which keeps nothing of it.
func TestVanishingWorktree(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	all := filepath.Join(s.work, ".git", "worktrees")
	require.NoError(t, os.MkdirAll(filepath.Join(all, "kept"), 0o755))
	for i := range 80 {
		other := filepath.Join(all, "other")
		require.NoError(t, os.MkdirAll(other, 0o755))
		for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
			require.NoError(t, os.WriteFile(filepath.Join(other, name), nil, 0o644))
		}
		removed := make(chan error, 1)
		s.change = func(*proc.Command) {
			time.AfterFunc(time.Duration(i)*50*time.Microsecond, func() { removed <- os.RemoveAll(other) })
		}
		out, status, said := s.run("echo done")
		require.Zero(t, status.Code, "%s %v", out, said)
		require.NoError(t, <-removed)
		entries, err := os.ReadDir(all)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
}

// The worktree can have been created again in the meantime.
func TestReplacedWorktree(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	other := filepath.Join(s.work, ".git", "worktrees", "other")
	create := func() error {
		err := os.MkdirAll(other, 0o755)
		for _, name := range []string{"commondir", "gitdir"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(other, name), []byte("../..\n"), 0o644))
		}
		return err
	}
	for i := range 80 {
		require.NoError(t, create())
		replaced := make(chan error, 1)
		s.change = func(*proc.Command) {
			time.AfterFunc(time.Duration(i)*50*time.Microsecond, func() {
				var err error
				for range 3 {
					err = errors.Join(err, os.RemoveAll(other), create())
				}
				replaced <- errors.Join(err, os.WriteFile(filepath.Join(s.work, "replaced"), nil, 0o644))
			})
		}
		out, status, said := s.run("until [ -e replaced ]; do sleep 0.01; done; rm replaced")
		require.Zero(t, status.Code, "%s %v", out, said)
		require.NoError(t, <-replaced)
	}
}

// A directory that is replaced at that time is as protected as before.
func TestReplacedDuringSetup(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	hooks := filepath.Join(s.work, ".git", "hooks")
	for i := range 80 {
		replaced := make(chan error, 1)
		s.change = func(*proc.Command) {
			time.AfterFunc(time.Duration(i)*50*time.Microsecond, func() {
				replaced <- errors.Join(os.RemoveAll(hooks), os.MkdirAll(hooks, 0o755))
			})
		}
		out, _, said := s.run("echo evil >.git/hooks/pre-commit")
		require.NoError(t, <-replaced)
		require.NoFileExists(t, filepath.Join(hooks, "pre-commit"), "%s %v", out, said)
	}
}
