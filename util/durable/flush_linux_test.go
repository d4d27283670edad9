package durable

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The other tests count flushes of a recorder. This one checks that a flush reaches the system: /dev/null
// accepts every byte and fails to flush.
func TestFlushReachesTheSystem(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, null.Close()) })
	require.NoError(t, writeAndFlush(null, []byte("x"), NoFlush))
	require.ErrorIs(t, writeAndFlush(null, []byte("x"), FullFlush), unix.EINVAL)
	require.ErrorIs(t, OS().SyncFile(os.DevNull), unix.EINVAL)
}
