//go:build unix

package agentproc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	program(t, second, "agent", 0o755)
	program(t, first, "locked", 0o644)
	program(t, filepath.Join(second, "sub"), "agent", 0o755)
	environ := []string{"PATH=/nowhere", "PATH=" + first + ":bin:" + second, "path=/elsewhere"}

	got, err := find(t, "agent", "/", environ)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(second, "agent"), got, "the last PATH counts")

	got, err = find(t, "sub/agent", second, environ)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(second, "sub", "agent"), got, "a relative path begins at the directory")

	for _, command := range []string{
		"none",
		"",
		"locked",
		first + "/none",
		"./locked",
	} {
		_, err := find(t, command, first, environ)
		var missing *NotFoundError
		require.ErrorAs(t, err, &missing)
		prosetest.Error(t, err, command)
	}
}

func TestLocatePassesOverRelativePathEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program(t, filepath.Join(dir, "bin"), "agent", 0o755)
	_, err := find(t, "agent", dir, []string{"PATH=bin::."})
	prosetest.Error(t, err)
}

// find returns the path of a command, as [Run] does.
func find(t *testing.T, command, dir string, environ []string) (string, error) {
	t.Helper()
	path, err := proc.LookPath(command, dir, environ)
	if err != nil {
		_, err = Run(t.Context(), Invocation{Command: command, Dir: dir, Env: environ})
	}
	return path, err
}

func program(t *testing.T, dir, name string, perm os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), perm))
}

// A uwf-box that was removed after it was found is not the command that a user has to install.
func TestMissingBox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program(t, dir, "agent", 0o755)
	inv := Invocation{Command: filepath.Join(dir, "uwf-box"), RunDir: t.TempDir(), Plain: true, Box: &proc.Box{
		Plan: func() ([]byte, error) { return nil, nil },
		Else: func(*proc.BoxError) (proc.Command, error) {
			return proc.Command{Path: filepath.Join(dir, "agent")}, nil
		},
	}}
	_, err := Run(t.Context(), inv)
	require.NoError(t, err)
	inv.Box.Else = nil
	_, err = Run(t.Context(), inv)
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
	require.False(t, missing.Absent())
}
