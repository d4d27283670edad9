package gc_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/fsstore"
)

// age seals the newest segment of a store, as if the last put into it were long ago.
func age(t testing.TB, s *fsstore.Store, by time.Duration) {
	t.Helper()
	segments, err := fs.Glob(os.DirFS(s.Dir()), "log/*.seg")
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	at := time.Now().Add(-by)
	require.NoError(t, os.Chtimes(filepath.Join(s.Dir(), segments[len(segments)-1]), at, at))
	c, err := s.Compact(context.Background(), time.Now(), false)
	require.NoError(t, err)
	require.NoError(t, c.Release())
}
