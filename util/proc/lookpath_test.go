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

	for _, dir := range []string{"home/ws", "home/ws/sub", "home/link-to-ws"} { // a subdirectory belongs to its repository
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

// All work trees of a repository form one workspace. Otherwise, if the user's tools are in a clone that is on
// the PATH, a model's worktree of it could provide programs.
func TestProgramsOfOtherWorkTreesAreNotFound(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	main, linked, sub := filepath.Join(base, "app"), filepath.Join(base, "uwf", "worktrees", "1"), filepath.Join(base, "app", "sub")
	git := func(args ...string) {
		c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		c.Dir = base
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	git("init", "-q", "app")
	git("-C", "app", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "app", "worktree", "add", "-q", linked)
	git("init", "-q", sub)
	for _, dir := range []string{main, linked} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "tools"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "planted"), []byte("#!/bin/sh\n"), 0o755))
	}
	for dir, tools := range map[string]string{linked: main, main: linked, sub: main} {
		env := []string{"HOME=" + base + "/home", "PATH=" + filepath.Join(tools, "tools")}
		var in *proc.InsideError
		_, err = proc.LookPath("planted", dir, env)
		require.ErrorAs(t, err, &in, dir)
		require.Equal(t, []string{env[0], "PATH="}, proc.OwnPath(env, dir))
	}
	// A clone can't disable a user's programs by pointing to their directory.
	require.NoError(t, os.WriteFile(filepath.Join(main, ".git", "worktrees", "1", "gitdir"), []byte(base+"/bin/.git\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(base, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "bin", "own"), []byte("#!/bin/sh\n"), 0o755))
	path, err := proc.LookPath("own", main, []string{"PATH=" + filepath.Join(base, "bin")})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(base, "bin", "own"), path)
}
