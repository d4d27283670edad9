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

// A program that embeds the engine hands its agents the uwf on PATH; one in the directory that it works
// in is nobody's.
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
	for path, want := range map[string]string{"bin": filepath.Join(dir, "bin", "uwf"), "work": ""} {
		e, err := engine.Open(t.Context(), env.Env{
			Environ: []string{"HOME=" + dir, "PATH=" + filepath.Join(dir, path)}, Dir: filepath.Join(dir, "work"), Now: time.Now, Exe: "/bot",
		}, engine.Options{Home: filepath.Join(dir, "home")})
		require.NoError(t, err)
		require.Equal(t, want, e.Reader.Env.Exe)
	}
}
