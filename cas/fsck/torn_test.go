package fsck_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/record"
)

// A turn that a power cut has torn before anything durable referred to it is not damage, although the index has it:
// neither before nor after its segment is sealed, wherever it was torn.
func TestTornTurn(t *testing.T) {
	t.Parallel()
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	for at := 0; at < record.HeaderSize+60; at += 1 + at/record.HeaderSize*9 {
		w := newWorld(t, 1)
		n := otherNode(w)
		require.NoError(t, w.store.Put(t.Context(), n))
		r := castest.FindRecord(t, w.store.Dir(), n.Hash)
		f, err := os.OpenFile(r.Path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(make([]byte, int(r.Head.Size())-at), int64(r.At+at))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for i, do := range []func(s *fsstore.Store) error{
			func(*fsstore.Store) error { return nil },
			func(s *fsstore.Store) error { return gc.Pack(t.Context(), s, later()) },
			func(s *fsstore.Store) error {
				_, err := gc.Run(t.Context(), s, gc.Options{Homes: []string{w.home}, Now: later})
				return err
			},
		} {
			w.open()
			require.NoError(t, do(w.store), "torn at byte %d", at)
			report := w.check(false)
			require.True(t, report.Sound(), "torn at byte %d: %v", at, report.Faults)
			if i > 0 && at < record.HeaderSize {
				require.Empty(t, report.Faults, "nothing is left of it")
			}
		}
	}
}
