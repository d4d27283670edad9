//go:build unix

package storeremote_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A directory owned or writable by another user is refused unless that user is trusted. A link in it is
// refused in any case.
func TestGuard(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(above), 0o755)) // the test's own directory isn't accessible to others
	dir := filepath.Join(above, "team")
	require.NoError(t, os.Mkdir(dir, 0o755))
	open := func(o storeremote.Options) error {
		o.Hash, o.Now = cas.XXH3, time.Now
		_, err := storeremote.Open(t.Context(), dir, o)
		return err
	}
	refused := func(err error) {
		t.Helper()
		var coded *protocol.Error
		require.True(t, errors.As(err, &coded), "%v", err)
		require.Equal(t, protocol.CodeInvalid, coded.Code)
	}
	written := refused // writable by others
	if !safeopen.Reachable(dir) {
		written = func(err error) { t.Helper(); require.NoError(t, err, "nobody else gets there") }
	}
	require.NoError(t, open(storeremote.Options{}))
	require.NoError(t, os.Chmod(dir, 0o777))
	written(open(storeremote.Options{}))
	require.NoError(t, open(storeremote.Options{Shared: true}))
	require.NoError(t, os.Chmod(dir, 0o755))
	if os.Geteuid() == 0 {
		const nobody = 65534
		require.NoError(t, os.Chown(dir, nobody, nobody))
		refused(open(storeremote.Options{}))
		require.NoError(t, open(storeremote.Options{Users: []int{nobody}}))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "cas"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cas", "lock"), nil, 0o600))
	for name, mode := range map[string]os.FileMode{"cas": 0o777, "cas/lock": 0o666} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
		written(open(storeremote.Options{Users: []int{65534}}))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), info.Mode()))
	}
	require.NoError(t, open(storeremote.Options{Users: []int{65534}}))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "cas", "nodes")))
	refused(open(storeremote.Options{Shared: true}))
}
