package fsstore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// unprivileged runs f without root's privileges on files.
func unprivileged(f func() error) error {
	result := make(chan error)
	go func() {
		// The thread ends with the goroutine, and its privileges with it.
		runtime.LockOSThread()
		const nobody = 65534
		if os.Geteuid() == 0 {
			if err := unix.Setfsuid(nobody); err != nil {
				result <- err
				return
			}
		}
		result <- f()
	}()
	return <-result
}

// An unreadable node is neither missing nor damaged, and a read-only one can be read.
func TestPermissions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	secret, public := castest.Node(t, cas.XXH3, "secret"), castest.Node(t, cas.XXH3, "public")
	require.NoError(t, open(t, dir, fsstore.Options{}).Put(ctx, secret, public))
	require.NoError(t, os.Chmod(pathOf(dir, secret.Hash), 0))
	for _, d := range []string{dir, filepath.Join(dir, "nodes")} {
		require.NoError(t, os.Chmod(d, 0o555))
		t.Cleanup(func() { _ = os.Chmod(d, 0o755) })
	}

	fresh := newShard(t, secret, public)
	var secretErr, putErr error
	require.NoError(t, unprivileged(func() error {
		s, err := fsstore.Open(ctx, dir, fsstore.Options{})
		if err != nil {
			return err
		}
		_, secretErr = s.Get(ctx, secret.Hash)
		putErr = s.Put(ctx, fresh)
		_, err = s.Get(ctx, public.Hash)
		return errors.Join(err, s.Put(ctx, public))
	}))
	require.ErrorIs(t, secretErr, fs.ErrPermission)
	require.ErrorContains(t, secretErr, pathOf(dir, secret.Hash))
	require.NotErrorIs(t, secretErr, cas.ErrNotFound)
	var corrupt *cas.CorruptError
	require.NotErrorAs(t, secretErr, &corrupt)
	require.ErrorIs(t, putErr, fs.ErrPermission)
	require.ErrorContains(t, putErr, dir)
}

// newShard returns a node whose directory differs from those of all others.
func newShard(t *testing.T, others ...cas.Node) cas.Node {
	t.Helper()
	for i := 0; ; i++ {
		n := castest.Node(t, cas.XXH3, i)
		taken := false
		for _, o := range others {
			taken = taken || n.Hash[:2] == o.Hash[:2]
		}
		if !taken {
			return n
		}
	}
}
