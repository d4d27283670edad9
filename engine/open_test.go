package engine_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/util/env"
)

// An embedding program passes on the uwf beside it or on PATH, but not one in its working directory.
func TestOpenFindsUwf(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("programs have other names")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"bin", "work"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "uwf"), []byte("#!/bin/sh\n"), 0o755))
	}
	uwf := filepath.Join(dir, "bin", "uwf")
	for _, c := range []struct{ exe, path, want string }{
		{"/bot", "bin", uwf}, {"/bot", "work", ""}, {filepath.Join(dir, "bin", "bot"), "work", uwf}, {"", "bin", uwf},
	} {
		e, err := engine.Open(t.Context(), env.Env{
			Environ: []string{"HOME=" + dir, "PATH=" + filepath.Join(dir, c.path)}, Dir: filepath.Join(dir, "work"), Now: time.Now, Exe: c.exe,
		}, engine.Options{Home: filepath.Join(dir, "home")})
		require.NoError(t, err)
		require.Equal(t, c.want, e.Uwf)
		require.Equal(t, c.exe, e.Reader.Env.Exe)
	}
}
