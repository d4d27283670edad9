package fileheads_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/threadid"
)

// Threads that exist but aren't in any file are found, regardless of the damage to threads.yaml; remains of a
// killed command aren't damage.
func TestLost(t *testing.T) {
	t.Parallel()
	const (
		hash  = protocol.Hash("0123456789ABC")
		ran   = "01BX5ZZKBKACTAV9WEVGEMMVRA"
		fresh = "01BX5ZZKBKACTAV9WEVGEMMVRB"
		ended = "01BX5ZZKBKACTAV9WEVGEMMVRC"
		kill  = "01BX5ZZKBKACTAV9WEVGEMMVRD"
	)
	for name, c := range map[string]struct {
		damage func(home string, text []byte) error
		want   []string
	}{
		"nothing": {func(string, []byte) error { return nil }, nil},
		"empty": {func(home string, _ []byte) error {
			return os.WriteFile(filepath.Join(home, "threads.yaml"), nil, 0o600)
		}, []string{ran, fresh}},
		"removed": {func(home string, _ []byte) error { return os.Remove(filepath.Join(home, "threads.yaml")) }, []string{ran, fresh}},
		"cut before all": {func(home string, text []byte) error {
			return os.WriteFile(filepath.Join(home, "threads.yaml"), text[:len(text)-2*43], 0o600)
		}, []string{ran, fresh}},
		"the history removed": {func(home string, _ []byte) error { return os.Remove(filepath.Join(home, "history.jsonl")) }, []string{ended}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, ctx := t.TempDir(), context.Background()
			x := fileheads.Open(home, durable.OS())
			title := "t"
			for _, id := range []string{ran, fresh, ended} {
				require.NoError(t, x.Add(ctx, id, hash, heads.Facts{Title: &title}))
			}
			require.NoError(t, x.Archive(ctx, heads.Ended{Thread: ended, Head: hash, Status: protocol.StatusCompleted}))
			for _, id := range []string{ran, ended} {
				dir := filepath.Join(home, "runs", id)
				require.NoError(t, os.MkdirAll(dir, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o600))
			}
			require.NoError(t, os.MkdirAll(filepath.Join(home, "runs", kill), 0o755)) // has not run
			text, err := os.ReadFile(filepath.Join(home, "threads.yaml"))
			require.NoError(t, err)
			require.NoError(t, c.damage(home, text))
			lost, err := x.Lost(ctx)
			require.NoError(t, err)
			require.Equal(t, c.want, lost)
			require.Equal(t, len(c.want) > 0, x.CheckLost(ctx) != nil)
		})
	}
}

// BenchmarkLost measures the cost for a list of 10,000 threads.
func BenchmarkLost(b *testing.B) {
	home, ctx := b.TempDir(), context.Background()
	x := fileheads.Open(home, durable.OS())
	var all []heads.New
	for i := range 10_000 {
		id, err := threadid.New(time.UnixMilli(int64(1_700_000_000_000+i)), bytes.NewReader(make([]byte, 16)))
		require.NoError(b, err)
		title := "t"
		all = append(all, heads.New{Head: heads.Head{Thread: id, Hash: "0123456789ABC"}, Facts: heads.Facts{Title: &title}})
		require.NoError(b, os.MkdirAll(filepath.Join(home, "runs", id), 0o755))
	}
	require.NoError(b, x.AddAll(ctx, all))
	for _, t := range all[:200] {
		require.NoError(b, x.Archive(ctx, heads.Ended{Thread: t.Thread, Head: t.Hash, Status: protocol.StatusCompleted}))
	}
	for b.Loop() {
		require.NoError(b, x.CheckLost(ctx))
	}
}
