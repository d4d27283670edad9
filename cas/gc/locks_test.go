package gc_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// The lock file of an ended thread is removed unless it is held.
func TestLocksOfEndedThreadsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const active, ended, held = "01ARZ3NDEKTSV4RRFFQ69G5F01", "01ARZ3NDEKTSV4RRFFQ69G5F02", "01ARZ3NDEKTSV4RRFFQ69G5F03"
	paths := map[string]string{}
	for _, id := range []string{active, ended, held} {
		head := w.start(id)
		paths[id] = filepath.Join(w.home, "locks", id+".lock")
		require.NoError(t, os.WriteFile(paths[id], nil, 0o600))
		if id != active {
			require.NoError(t, w.index.Archive(t.Context(), heads.Ended{Thread: id, Head: head, Status: protocol.StatusCancelled}))
		}
	}
	lock, err := durable.TryLock(paths[held])
	require.NoError(t, err)
	_, err = gc.Run(t.Context(), w.store, gc.Options{Homes: []string{w.home}, Now: time.Now})
	require.NoError(t, err)
	require.FileExists(t, paths[active])
	require.NoFileExists(t, paths[ended])
	require.FileExists(t, paths[held])
	require.NoError(t, lock.Unlock())
	require.FileExists(t, filepath.Join(w.home, "locks", "threads.lock"))
}

// References in a damaged line are kept until a person removes the file in the quarantine.
func TestTheQuarantineIsARoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := w.start(firstThread)
	file := w.index.ThreadsPath()
	require.NoError(t, os.WriteFile(file, []byte("p1ARZ3NDEKTSV4RRFFQ69G5F01: "+string(head)+"\n"), 0o600))
	collect := func() error {
		_, err := gc.Run(t.Context(), w.store, gc.Options{Homes: []string{w.home}, Now: time.Now})
		return err
	}
	require.Error(t, collect(), "nobody knows what the line means")
	n, to, err := w.index.QuarantineThreads(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, collect())
	_, err = w.store.Get(t.Context(), head)
	require.NoError(t, err)
	require.NoError(t, os.Remove(to))
	require.NoError(t, collect())
	_, err = w.store.Get(t.Context(), head)
	require.Error(t, err)
}
