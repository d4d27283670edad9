package safeopen

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asOrdinaryUser makes this test's thread obey permissions, even if the user is root. The thread ends with the test.
func asOrdinaryUser(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &data[0]))
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	require.NoError(t, unix.Capset(&header, &data[0]))
}

func TestRemoveAll(t *testing.T) {
	t.Parallel()
	asOrdinaryUser(t)
	dir := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o700))
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "file"), nil, 0o400))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "a", "link")))
	for _, at := range []string{"a/b/c", "a/b", "a", "."} {
		require.NoError(t, os.Chmod(filepath.Join(dir, at), 0))
	}
	require.Error(t, os.RemoveAll(dir), "closed for the test, too")
	require.NoError(t, RemoveAll(dir))
	require.NoDirExists(t, dir)
	require.DirExists(t, outside)
	require.NoError(t, RemoveAll(dir))
}

// A program can hide closed directories deep below others, and in those whose names aren't UTF-8.
func TestRemoveAllOfOddDirectories(t *testing.T) {
	t.Parallel()
	asOrdinaryUser(t)
	for _, closed := range []string{strings.Repeat("d/", 99), strings.Repeat("d/", 450), "\xff/d", "\xff"} {
		dir := filepath.Join(t.TempDir(), "tree")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, closed, "in"), 0o700))
		require.NoError(t, os.Chmod(filepath.Join(dir, closed), 0))
		require.NoError(t, RemoveAll(dir), closed)
		require.NoDirExists(t, dir)
	}
}

// A link in a closed directory can't be removed, and its target stays as it is.
func TestRemoveAllOfALink(t *testing.T) {
	t.Parallel()
	asOrdinaryUser(t)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "closed"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "target", "in"), 0o755))
	require.NoError(t, os.Symlink("../target", filepath.Join(dir, "closed", "link")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "closed"), 0o500))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	require.ErrorIs(t, RemoveAllIn(root, "closed/link"), os.ErrPermission)
	info, err := os.Stat(filepath.Join(dir, "target", "in"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	require.NoError(t, os.Chmod(filepath.Join(dir, "closed"), 0o700))
}
