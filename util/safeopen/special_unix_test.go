//go:build unix

package safeopen_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/safeopen"
)

// None of these blocks or is read.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, zero, endless := filepath.Join(dir, "pipe"), filepath.Join(dir, "zero"), filepath.Join(dir, "endless")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink("/dev/zero", zero))
	require.NoError(t, os.WriteFile(endless, nil, 0o600))
	require.NoError(t, os.Truncate(endless, 200<<30))
	for path, want := range map[string]string{pipe: "a pipe", zero: "a device", "/dev/null": "a device"} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
			_, err := safeopen.OpenFile(path, flag, 0, safeopen.Follow)
			var odd *safeopen.NotFileError
			require.ErrorAs(t, err, &odd, path)
			assert.Equal(t, path+" is "+want+", not a file", err.Error())
		}
	}
	_, err := safeopen.ReadFile(endless, 1<<20, safeopen.NoFollow)
	var big *safeopen.TooBigError
	require.ErrorAs(t, err, &big)
}
