//go:build unix

package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestDistrust(t *testing.T) {
	t.Parallel()
	// Other users can access it.
	outer := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(outer), 0o755))
	require.NoError(t, os.Chmod(outer, 0o755))
	dir := filepath.Join(outer, "home")
	dirs := home.Dirs{Home: dir, Store: filepath.Join(dir, "cas")}
	require.NoError(t, Distrust(dirs), "there is nothing yet")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(dirs.Config(), nil, 0o600))
	require.NoError(t, Distrust(dirs))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(dirs.Config(), 0o644))
	require.NoError(t, Distrust(dirs), "reading is another matter")
	prosetest.Text(t, Open(dirs))

	for _, path := range []string{dir, dirs.Config()} {
		was, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(path, 0o777))
		var e *protocol.Error
		require.ErrorAs(t, Distrust(dirs), &e)
		prosetest.Text(t, e.Message)
		require.Equal(t, "chmod go-w "+path, e.Hints[0])
		require.NoError(t, os.Chmod(path, was.Mode()))
	}
	require.NoError(t, os.Chmod(dirs.Config(), 0o666))
	require.NoError(t, os.Chmod(outer, 0o700))
	require.NoError(t, Distrust(dirs), "nobody gets there")
	if os.Geteuid() != 0 {
		return
	}
	require.NoError(t, os.Chmod(outer, 0o755))
	require.NoError(t, os.Chmod(dirs.Config(), 0o664))
	require.NoError(t, Distrust(dirs), "one's own group")
	require.NoError(t, os.Chown(dirs.Config(), 0, 12345))
	require.ErrorIs(t, Distrust(dirs), &protocol.Error{Code: protocol.CodeInvalid})
	require.NoError(t, os.Chown(dirs.Config(), 12345, 0))
	require.ErrorIs(t, Distrust(dirs), &protocol.Error{Code: protocol.CodeInvalid})
}
