package fsstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
)

func open(t testing.TB, dir string, o fsstore.Options) *fsstore.Store {
	t.Helper()
	s, err := fsstore.Open(context.Background(), dir, o)
	require.NoError(t, err)
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			castest.TestStore(t, func(t *testing.T) cas.Store {
				return open(t, t.TempDir(), fsstore.Options{Hash: a})
			})
		})
	}
	t.Run("original", func(t *testing.T) {
		t.Parallel()
		castest.TestStore(t, func(t *testing.T) cas.Store { return originals(t, t.TempDir()) })
	})
	t.Run("first version", func(t *testing.T) {
		t.Parallel()
		castest.TestStore(t, func(t *testing.T) cas.Store {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "format.json"), firstFormat)
			return open(t, dir, fsstore.Options{})
		})
	})
}

// firstFormat is the format.json of our first version.
const firstFormat = `{"version":1,"hash":"xxh3","layout":"fan2","flush":"auto"}` + "\n"

// originals returns a store of the original, which is empty except for a file with another name.
func originals(t *testing.T, dir string) *fsstore.Store {
	n := castest.Node(t, cas.XXH64, "the original's")
	path := filepath.Join(dir, "nodes", string(n.Hash)+".bin")
	write(t, path, string(cas.MarshalFile(n)))
	s := open(t, dir, fsstore.Options{})
	require.True(t, s.Originals())
	require.NoError(t, os.Remove(path))
	return s
}
