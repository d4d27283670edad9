package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// The test binary acts as the program when run under its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "uwf-remote-file" {
		main()
		return
	}
	tmpfstest.Main(m)
}

// environ returns an environment in which the program is found.
func environ(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, "uwf-remote-file")))
	return append(os.Environ(), "PATH="+bin)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.RunProgram(t, environ(t), func(t *testing.T) remote.Address {
		return remote.Address{Scheme: "file", Text: filepath.Join(t.TempDir(), "team")}
	})
}
