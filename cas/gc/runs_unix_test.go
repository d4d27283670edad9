//go:build unix

package gc_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
)

// Unusual files in an agent's run directory don't stop a collection, and its references are kept wherever
// they are.
func TestRunDirectoriesThatAreNone(t *testing.T) {
	t.Parallel()
	// The home's name is not a pattern.
	home := filepath.Join(t.TempDir(), "[home]")
	w := &world{t: t, home: home, store: openStore(t, home), index: fileheads.Open(home, durable.OS())}
	w.start(firstThread)
	runs := filepath.Join(w.home, "runs")
	pipes, sparse, elsewhere := filepath.Join(runs, "pipes"), filepath.Join(runs, "sparse"), t.TempDir()
	require.NoError(t, os.MkdirAll(pipes, 0o755))
	for _, name := range []string{"run.json", "stdout", "agent.lock"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(pipes, name), 0o600))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(runs, "pipe"), 0o600))
	require.NoError(t, os.Symlink("/dev", filepath.Join(runs, "dev")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(runs, "moved")))

	late, moved, lost := w.text("late"), w.text("moved"), w.text("lost")
	w.age(1000 * time.Hour)
	require.NoError(t, os.MkdirAll(sparse, 0o755))
	f, err := os.Create(filepath.Join(sparse, "stdout"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(200<<30))
	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(filepath.Join(sparse, "result.json"), []byte(late), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "stdout"), []byte(moved), 0o600))
	require.Equal(t, 1, w.collect(gc.Options{}).Freed)
	require.True(t, w.has(late))
	require.True(t, w.has(moved))
	require.False(t, w.has(lost))

	if proc.Birth(os.Getpid()) == "" {
		return // this system doesn't distinguish processes
	}
	// An agent without a run directory, whose engine has exited.
	lock, err := durable.TryLock(filepath.Join(w.home, "locks", firstThread+".lock"))
	require.NoError(t, err)
	require.NoError(t, lock.Note(durable.Holder{Pid: 1, Since: time.Now().Add(-2000 * time.Hour), Child: os.Getpid(), Birth: proc.Birth(os.Getpid())}))
	require.NoError(t, lock.Unlock())
	w.text("lost")
	w.age(1000 * time.Hour)
	require.Zero(t, w.collect(gc.Options{}).Freed)
}
