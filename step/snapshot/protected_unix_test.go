//go:build unix

package snapshot_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/usertest"
)

// Git only warns if it can't delete a file, and it stops halfway if it can't replace one.
func TestProtectedDirectories(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	w := repository(t)
	first := w.take().Tree
	w.sh(`echo more >> d/b; mkdir -p m/v/x/y s; echo x > m/v/x/y/z; echo x > m/w; echo s > s/s; chmod 500 m/v/x/y m/v/x m/v m d; chmod 2551 s`)
	second := w.take().Tree
	w.restore(first)
	require.Equal(t, "dr-x------", w.sh("stat -c %A d")[:10])
	require.NoFileExists(t, filepath.Join(w.root, "m"))
	require.NoFileExists(t, filepath.Join(w.root, "s"))
	w.sh(`mkdir m; chmod 500 m`)
	w.restore(second)
	require.Equal(t, "dr-x------", w.sh("stat -c %A m")[:10])
	w.sh(`chmod -R u+w .`)
}

// Nothing is written if another user owns a directory.
func TestForeignDirectories(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	w := newWorld(t)
	w.root = usertest.Foreign(t)
	w.sh(`git init -q; printf '/*\n!/a\n' > .git/info/exclude; echo 1 > a; git add a; git commit -q -m first`)
	first := w.take().Tree
	w.sh(`echo '!/foreign' >> .git/info/exclude; echo 2 > a`)
	require.NoError(t, w.repo.Seed(t.Context(), w.spec.Git, false))
	second := w.take()
	require.NotEqual(t, first, second.Tree)
	var protected *snapshot.ProtectedError
	require.ErrorAs(t, w.change("", first), &protected)
	require.Equal(t, []string{filepath.Join(w.root, "foreign")}, protected.Dirs)
	require.Equal(t, "2\n", w.sh("cat a"))
}
