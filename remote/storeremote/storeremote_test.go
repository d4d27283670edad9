package storeremote_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/storeremote"
)

// Each connection opens the directory anew, as another process would.
func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(t *testing.T, a cas.Algorithm) remotetest.Open {
		dir := filepath.Join(t.TempDir(), "team")
		return func(t testing.TB) remote.Remote {
			r, err := storeremote.Open(t.Context(), dir, storeremote.Options{Hash: a, Program: "test", Flush: "none", Now: time.Now})
			require.NoError(t, err)
			return r
		}
	})
}
