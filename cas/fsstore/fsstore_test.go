package fsstore_test

import (
	"context"
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
		for _, flush := range []string{"full", "batch", "none"} {
			t.Run(string(a)+" "+flush, func(t *testing.T) {
				t.Parallel()
				castest.TestStore(t, func(t *testing.T) cas.Store {
					return open(t, t.TempDir(), fsstore.Options{Hash: a, Flush: flush})
				})
			})
		}
	}
}
