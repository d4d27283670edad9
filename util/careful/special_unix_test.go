//go:build unix

package careful_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/careful"
)

// None of these is waited for, or read.
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
			_, err := careful.OpenFile(path, flag, 0, careful.Follow)
			var odd *careful.NotFileError
			require.ErrorAs(t, err, &odd, path)
			assert.Equal(t, path+" is not a file but "+want, err.Error())
		}
	}
	_, err := careful.ReadFile(endless, 1<<20, careful.NoFollow)
	var big *careful.TooBigError
	require.ErrorAs(t, err, &big)
}
