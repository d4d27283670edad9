//go:build unix

package snapshot_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/step/snapshot"
)

// forge overwrites a user's object in place; ours is the same file.
func (w *world) forge(object, kind, content string) {
	w.Helper()
	path := filepath.Join(w.repo.Common, "objects", object[:2], object[2:])
	require.NoError(w, os.Chmod(path, 0o644))
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	fmt.Fprintf(z, "%s %d\x00%s", kind, len(content), content)
	require.NoError(w, z.Close())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	require.NoError(w, err)
	_, err = f.Write(b.Bytes())
	require.NoError(w, err)
	require.NoError(w, f.Close())
}

// An object that was modified in place is neither restored nor shown. Otherwise a command that can't write
// the home could change a file that undo restores.
func TestForgedObjects(t *testing.T) {
	t.Parallel()
	for _, object := range []string{"a", "d", "d/b"} {
		t.Run(strings.ReplaceAll(object, "/", "_"), func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			before := w.take()
			w.sh(`printf 'three\n' > a; printf 'four\n' > d/b`)
			after := w.take()
			sum := strings.TrimSpace(w.sh("git rev-parse HEAD:" + object))
			if object == "d" {
				w.forge(sum, "tree", "100755 b\x00"+strings.Repeat("x", 20))
			} else {
				w.forge(sum, "blob", "evil\n")
			}
			var damaged *snapshot.DamagedError
			err := w.change("", before.Tree)
			require.ErrorAs(t, err, &damaged)
			require.Equal(t, sum, damaged.Object)
			require.Equal(t, object, damaged.Path)
			require.Equal(t, "three\n", w.sh("cat a"), "nothing was written")
			require.ErrorAs(t, snapshot.Patch(t.Context(), w.env, w.spec.Git, before.Tree, after.Tree, io.Discard), &damaged)
			s := w.spec
			s.Root, s.Index = t.TempDir(), filepath.Join(t.TempDir(), "index")
			require.ErrorAs(t, snapshot.Reset(t.Context(), w.env, s, before.Tree), &damaged)
		})
	}
}
