package fsstore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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

// A store that can only be read can be read, and a put of what exists there succeeds.
func TestPermissions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	public, fresh := castest.Node(t, cas.XXH3, "public"), castest.Node(t, cas.XXH3, "fresh")
	require.NoError(t, open(t, dir, fsstore.Options{}).Put(ctx, public))
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() { // as the owner can't write either
			return errors.Join(err, os.Chmod(path, 0o444))
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
		return os.Chmod(path, 0o555)
	}))
	var putErr error
	require.NoError(t, unprivileged(func() error {
		s, err := fsstore.Open(ctx, dir, fsstore.Options{})
		if err != nil {
			return err
		}
		putErr = s.Put(ctx, fresh)
		_, err = s.Get(ctx, public.Hash)
		return errors.Join(err, s.Put(ctx, public))
	}))
	require.ErrorIs(t, putErr, fs.ErrPermission)
	require.ErrorContains(t, putErr, dir)

	segment := castest.FindRecord(t, dir, public.Hash).Path
	require.NoError(t, os.Chmod(segment, 0))
	var getErr error
	require.NoError(t, unprivileged(func() error {
		s, err := fsstore.Open(ctx, dir, fsstore.Options{})
		if err == nil {
			_, getErr = s.Get(ctx, public.Hash)
		}
		return err
	}))
	require.ErrorIs(t, getErr, fs.ErrPermission)
	require.ErrorContains(t, getErr, segment)
	require.NotErrorIs(t, getErr, cas.ErrNotFound, "that is not known")
	require.NotErrorAs(t, getErr, new(*cas.CorruptError))
}

// In a directory that a group can write to, its members can append to the log whatever the umask.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o770))
	s := open(t, dir, fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "node")
	require.NoError(t, s.Put(t.Context(), n))
	for _, name := range []string{"log", "log/00000001.seg", "log/00000001.idx", "log.lock", "gc.lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o020, name)
	}
}

// A process with a low limit of open files uses a store with more segments.
func TestFewOpenFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	for _, n := range nodes(t, cas.XXH3, 70) {
		require.NoError(t, s.Put(t.Context(), n))
		sealed(t, dir)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command("/bin/sh", "-c", `ulimit -n 64 && exec "$0"`, self)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s 1", childEnv, dir, cas.XXH3))
	child.Stdin = strings.NewReader("x")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
}
