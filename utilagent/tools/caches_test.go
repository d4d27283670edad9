package tools_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// The caches of deleted repositories, and of those unused for a month, are removed; all others stay.
func TestCachesAreSwept(t *testing.T) {
	t.Parallel()
	home, base := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".cache"), 0o700))
	caches := func(name string) string {
		dir := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		w, err := tools.OpenWorkspace(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, w.Close()) })
		_, dirs := w.Caches([]string{"HOME=" + home}, time.Now())
		own := dirs[len(dirs)-1]
		require.DirExists(t, own)
		require.NoError(t, os.WriteFile(filepath.Join(own, "built"), nil, 0o600))
		return own
	}
	gone, old, used := caches("gone"), caches("old"), caches("used")
	require.NoError(t, os.RemoveAll(filepath.Join(base, "gone")))
	long := time.Now().Add(-40 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(old+".of", long, long))

	caches("used")
	require.DirExists(t, gone, "only who makes a new set sweeps")
	caches("new")
	require.NoDirExists(t, gone)
	require.NoFileExists(t, gone+".of")
	require.NoDirExists(t, old)
	require.FileExists(t, filepath.Join(used, "built"))
}

// Scanning a user's downloads takes long, so it is done once a minute.
func TestCachesAreFilledNowAndThen(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	w, err := tools.OpenWorkspace(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	download := func(name string) {
		path := filepath.Join(home, "go/pkg/mod/cache/download", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o644))
	}
	download("m/v1.zip")
	env, dirs := w.Caches([]string{"HOME=" + home}, time.Now())
	own := filepath.Join(dirs[0], "go/pkg/mod/cache/download/m")
	require.FileExists(t, filepath.Join(own, "v1.zip"))
	download("m/v2.zip")
	again, _ := w.Caches([]string{"HOME=" + home}, time.Now())
	require.Equal(t, env, again)
	require.NoFileExists(t, filepath.Join(own, "v2.zip"))
	for _, at := range []time.Duration{-2 * time.Minute, time.Hour} { // also if the clock was set back
		download("m/v" + at.String() + ".zip")
		then := time.Now().Add(at)
		require.NoError(t, os.Chtimes(dirs[0]+".of", then, then))
		w.Caches([]string{"HOME=" + home}, time.Now())
		require.FileExists(t, filepath.Join(own, "v"+at.String()+".zip"))
	}
}
