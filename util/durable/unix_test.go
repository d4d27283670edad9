//go:build unix

package durable_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

// Features that Windows lacks: inherited numbered descriptors, and modes.

func TestChildHoldsWhatItInherits(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"hold", "takeover"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "agent.lock")
			held, err := durable.TryLock(path)
			require.NoError(t, err)

			c := child(part, path)
			c.ExtraFiles = []*os.File{held.File()}
			stdin, err := c.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, c.Start())
			require.NoError(t, held.Unlock())
			_, err = durable.TryLock(path)
			require.ErrorIs(t, err, durable.ErrLocked, "the child is alive")

			require.NoError(t, stdin.Close())
			require.NoError(t, c.Wait())
			next, err := durable.TryLock(path)
			require.NoError(t, err, "the child has ended")
			require.NoError(t, next.Unlock())
		})
	}
}

func TestWhatAnAgentLeavesBehindDoesNotHoldItsLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.lock")
	held, err := durable.TryLock(path)
	require.NoError(t, err)
	agent := child("leave", path)
	agent.ExtraFiles = []*os.File{held.File()}
	stdin, end, err := os.Pipe()
	require.NoError(t, err)
	agent.Stdin = stdin
	agent.Stderr = new(bytes.Buffer)
	require.NoError(t, agent.Start())
	require.NoError(t, held.Unlock())
	require.NoError(t, agent.Wait(), "%s", agent.Stderr)
	next, err := durable.TryLock(path)
	require.NoError(t, err, "the agent has ended, its child has not")
	require.NoError(t, next.Unlock())
	require.NoError(t, stdin.Close())
	require.NoError(t, end.Close(), "which ends the child")
}

func TestInheritedRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "l")
	held, err := durable.TryLock(path)
	require.NoError(t, err)

	other, err := os.Create(filepath.Join(dir, "other"))
	require.NoError(t, err)
	_, err = durable.Inherited(other, path)
	require.ErrorIs(t, err, durable.ErrNotLock)
	require.NoError(t, other.Close())

	unlocked, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = durable.Inherited(unlocked, path)
	require.ErrorIs(t, err, durable.ErrLocked)
	require.NoError(t, unlocked.Close())
	require.NoError(t, held.Unlock())
}

func TestWriteFileKeepsPrivateFilesPrivate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ old, perm, want fs.FileMode }{
		"a person closed it":    {0o600, 0o644, 0o600},
		"secrets are to go in":  {0o644, 0o600, 0o600},
		"nothing special about": {0o644, 0o644, 0o644},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "f")
			require.NoError(t, os.WriteFile(path, nil, 0o666))
			created, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.Chmod(path, tt.old))
			require.NoError(t, durable.WriteFile(durable.OS(), path, []byte("x"), tt.perm))
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, tt.want&created.Mode(), info.Mode().Perm(), "the umask applies")
		})
	}
}

// A line is not added to a file of another name, as in a backup of the directory.
func TestAddLineNotThroughLinks(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(from, to string) error{"hard": os.Link, "symbolic": os.Symlink} {
		dir := t.TempDir()
		other, path := filepath.Join(dir, "other"), filepath.Join(dir, "f")
		require.NoError(t, os.WriteFile(other, []byte("mine\n"), 0o600))
		require.NoError(t, link(other, path))
		require.Error(t, durable.AddLine(durable.OS(), path, []byte("x\n")), name)
		data, err := os.ReadFile(other)
		require.NoError(t, err)
		require.Equal(t, "mine\n", string(data), name)
	}
}
