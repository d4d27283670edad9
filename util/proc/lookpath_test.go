//go:build unix

package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// The workspace never provides a program that the user's tools start.
func TestProgramsOfTheWorkspaceAreNotFound(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"home/bin/both", "home/bin/own", "home/ws/venv/both", "home/ws/venv/planted", "home/ws/sub/x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o755))
		require.NoError(t, os.WriteFile(at(name), []byte("#!/bin/sh\n"), 0o755))
	}
	require.NoError(t, os.Mkdir(at("home/ws/.git"), 0o755))
	require.NoError(t, os.Symlink(at("home/ws/venv"), at("home/way")))
	require.NoError(t, os.Symlink(at("home/ws/venv/planted"), at("home/bin/link")))
	require.NoError(t, os.Symlink(at("home/ws"), at("home/link-to-ws")))
	list := strings.Join([]string{"", ".", "venv", at("home/ws/venv"), at("home/way"), at("home/bin")}, ":")
	env := []string{"HOME=" + at("home"), "PATH=" + list}

	for _, dir := range []string{"home/ws", "home/ws/sub", "home/link-to-ws"} { // a subdirectory is part of its repository
		path, err := proc.LookPath("both", at(dir), env)
		require.NoError(t, err)
		require.Equal(t, at("home/bin/both"), path, dir)
		for _, name := range []string{"planted", "link"} {
			var in *proc.InsideError
			_, err = proc.LookPath(name, at(dir), env)
			require.ErrorAs(t, err, &in, "%s from %s", name, dir)
		}
		require.Equal(t, []string{env[0], "PATH=" + at("home/bin")}, proc.OwnPath(env, at(dir)))
	}
	_, err = proc.LookPath("nowhere", at("home/ws"), env)
	require.ErrorIs(t, err, exec.ErrNotFound)
	path, err := proc.LookPath("./venv/planted", at("home/ws"), env)
	require.NoError(t, err)
	require.Equal(t, at("home/ws/venv/planted"), path, "who names a path means it")

	for _, dir := range []string{at("home"), base, "/"} {
		path, err := proc.LookPath("own", dir, env)
		require.NoError(t, err)
		require.Equal(t, at("home/bin/own"), path, "in the home directory everything is the work's")
	}
}
