package durable_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
)

// A wait is reported once, and only if it takes long.
func TestWaitingIsReported(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int{2 * time.Second: 0, time.Minute: 1} {
		path := filepath.Join(t.TempDir(), "x.lock")
		synctest.Test(t, func(t *testing.T) {
			held, err := durable.TryLock(path)
			require.NoError(t, err)
			var reported []string
			ctx := durable.WithWaiting(t.Context(), func(path string) { reported = append(reported, path) })
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			_, err = durable.Lock(ctx, path)
			require.ErrorIs(t, err, durable.ErrLocked)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, path)
			require.Len(t, reported, want)
			require.NoError(t, held.Unlock())
		})
	}
}
