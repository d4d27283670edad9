package durable

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The other tests count flushes of a recorder. That one reaches the system shows where the system
// cannot do it: /dev/null takes every byte and refuses to flush.
func TestFlushReachesTheSystem(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, null.Close()) })
	require.NoError(t, writeAndFlush(null, []byte("x"), NoFlush))
	require.ErrorIs(t, writeAndFlush(null, []byte("x"), FullFlush), unix.EINVAL)
	require.Error(t, writeAndFlush(null, []byte("x"), StartFlush))
	require.ErrorIs(t, OS().SyncFile(os.DevNull), unix.EINVAL)
	require.Error(t, OS().StartSync(os.DevNull))
}
