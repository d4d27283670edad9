package fsstore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/util/durable"
)

// watched counts the flushes of content while other processes can't put nodes, by lock. A flush can take seconds on a
// busy disk.
type watched struct {
	durable.FS
	dir     string
	waited  map[string]int
	flushed int
}

func (w *watched) note(path string) {
	w.flushed++
	for _, lock := range []string{"gc.lock", "log.lock"} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		held, err := durable.LockShared(ctx, filepath.Join(w.dir, lock))
		if err == nil {
			err = held.Unlock()
		}
		if errors.Is(err, durable.ErrLocked) {
			w.waited[lock+" "+filepath.Base(path)]++
		}
	}
}

func (w *watched) SyncFile(path string) error {
	w.note(path)
	return w.FS.SyncFile(path)
}

// SyncDir implements [durable.FS]. The name of an empty segment becomes durable before anything is appended to it.
func (w *watched) SyncDir(path string) error {
	if !strings.HasSuffix(path, "log") {
		w.note(path)
	}
	return w.FS.SyncDir(path)
}

func (w *watched) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (string, error) {
	if flush == durable.FullFlush {
		w.note(path)
	}
	return w.FS.WriteTemp(path, data, perm, flush)
}

func (w *watched) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	if flush == durable.FullFlush {
		w.note(path)
	}
	return w.FS.Append(path, data, perm, flush)
}

// No process waits for a flush of upkeep, or of a process that fills segments.
func TestNobodyWaitsForAFlush(t *testing.T) {
	t.Parallel()
	all := nodes(t, cas.XXH3, 60)
	for name, work := range map[string]func(t *testing.T, s *fsstore.Store){
		"filling segments": func(t *testing.T, s *fsstore.Store) {
			require.NoError(t, s.Commit(t.Context(), nodes(t, cas.XXH3, 2*32<<10)...))
		},
		"compaction": func(t *testing.T, s *fsstore.Store) { compact(t, s) },
		"compaction that keeps more at the end": func(t *testing.T, s *fsstore.Store) {
			saved := map[cas.Hash]bool{}
			collectWith(t, s, func(h cas.Hash) bool { return h != all[3].Hash || saved[h] },
				func() { saved[all[3].Hash] = true })
			requireNodes(t, s, all)
		},
		"redaction": func(t *testing.T, s *fsstore.Store) {
			require.NoError(t, s.Redact(t.Context(), func() error { return nil }, cas.Tombstone{Hash: all[0].Hash, Type: all[0].Type}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cas")
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, open(t, dir, fsstore.Options{}).Commit(t.Context(), all...))
			w := &watched{FS: durable.OS(), dir: dir, waited: map[string]int{}}
			work(t, open(t, dir, fsstore.Options{FS: w}))
			require.Positive(t, w.flushed)
			require.Empty(t, w.waited)
		})
	}
}

// A store of many segments is read with few open files. A segment of many records is sealed, whatever its size.
func TestManySegments(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	all := nodes(t, cas.XXH3, 70)
	s := open(t, dir, fsstore.Options{})
	for _, n := range all {
		require.NoError(t, s.Put(ctx, n))
		sealed(t, dir)
	}
	for range 2 {
		requireNodes(t, s, all)
		requireNodes(t, s, all[:10])
	}
	require.LessOrEqual(t, s.OpenFiles(), fsstore.MaxOpen)
	_, err := s.Get(ctx, castest.Node(t, cas.XXH3, "none").Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)

	many := nodes(t, cas.XXH3, 32<<10+1)
	fresh := t.TempDir()
	require.NoError(t, open(t, fresh, fsstore.Options{}).Put(ctx, many...))
	require.FileExists(t, filepath.Join(fresh, "log", "00000002.seg"))
	requireNodes(t, open(t, fresh, fsstore.Options{}), many)
}
