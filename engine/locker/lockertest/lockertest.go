// Package lockertest tests implementations of [locker.Locker].
package lockertest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/locker"
)

// Thread IDs used in the tests.
const idA, idB = "01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB"

// Run runs the test suite. Each call of open returns a new locker, which must see the locks of the others.
func Run(t *testing.T, open func(t *testing.T) locker.Locker) {
	for name, test := range map[string]func(*testing.T, locker.Locker){
		"one at a time":               excludes,
		"a lock is waited for":        waits,
		"a holder is known":           holders,
		"a context that has ended":    gives,
		"the lock of an ended thread": removed,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func lock(t *testing.T, l locker.Locker, thread string) locker.Lock {
	t.Helper()
	held, err := l.Lock(t.Context(), thread)
	require.NoError(t, err)
	return held
}

func excludes(t *testing.T, l locker.Locker) {
	require.False(t, l.Held(t.Context(), idA))
	held := lock(t, l, idA)
	require.True(t, l.Held(t.Context(), idA))
	require.False(t, l.Held(t.Context(), idB), "another thread is free")
	require.NoError(t, lock(t, l, idB).Unlock())

	brief, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := l.Lock(brief, idA)
	require.ErrorIs(t, err, locker.ErrLocked)
	require.NoError(t, held.Unlock())
	require.False(t, l.Held(t.Context(), idA))
	require.NoError(t, lock(t, l, idA).Unlock())
}

func waits(t *testing.T, l locker.Locker) {
	held := lock(t, l, idA)
	got := make(chan error, 1)
	go func() {
		next, err := l.Lock(t.Context(), idA)
		if err == nil {
			err = next.Unlock()
		}
		got <- err
	}()
	select {
	case err := <-got:
		require.FailNow(t, "the lock was had twice", "%v", err)
	default:
	}
	require.NoError(t, held.Unlock())
	require.NoError(t, <-got)
}

func holders(t *testing.T, l locker.Locker) {
	held := lock(t, l, idA)
	who := locker.Holder{Pid: os.Getpid(), Since: time.Unix(1_800_000_000, 0), Child: 7, Birth: "then"}
	require.NoError(t, held.Note(who))
	got, err := l.Holder(t.Context(), idA)
	require.NoError(t, err)
	require.True(t, who.Since.Equal(got.Since))
	got.Since = who.Since
	require.Equal(t, who, got)
	_, err = l.Holder(t.Context(), idB)
	require.Error(t, err, "nobody has held it")
	require.NoError(t, held.Unlock())
}

func gives(t *testing.T, l locker.Locker) {
	held := lock(t, l, idA)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Lock(ctx, idA)
	require.ErrorIs(t, err, locker.ErrLocked)
	require.NoError(t, held.Unlock())
}

func removed(t *testing.T, l locker.Locker) {
	require.NoError(t, lock(t, l, idA).RemoveAndUnlock())
	require.False(t, l.Held(t.Context(), idA))
	require.NoError(t, lock(t, l, idA).Unlock(), "the thread may be reopened")
}
