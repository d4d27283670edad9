package durable

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Any number of processes can hold a shared lock, which excludes an exclusive one.
func TestSharedLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "sub", "x.lock")
	first, err := LockShared(ctx, path)
	require.NoError(t, err)
	second, err := LockShared(ctx, path)
	require.NoError(t, err)
	_, err = TryLock(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, first.Unlock())
	_, err = TryLock(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, second.Unlock())

	alone, err := TryLock(path)
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	_, err = LockShared(soon, path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, alone.Unlock())
}

func TestTouch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o444))
	long := time.Unix(1, 0)
	require.NoError(t, os.Chtimes(path, long, long))
	require.NoError(t, OS().Touch(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, info.ModTime().After(long))
	require.ErrorIs(t, OS().Touch(path+"none"), os.ErrNotExist)
}
