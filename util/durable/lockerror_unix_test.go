//go:build unix

package durable

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A file system without locks is an error that is not mistaken for a lock that another process holds.
func TestNoLocks(t *testing.T) {
	t.Parallel()
	for _, errno := range []unix.Errno{unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP} {
		err := lockError(errno)
		require.ErrorIs(t, err, errno)
		require.NotErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, "file system")
	}
	require.NoError(t, lockError(nil))
}
