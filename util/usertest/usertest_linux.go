// Package usertest runs tests as an ordinary user, because permissions don't restrict root.
package usertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
)

// nobody is the id of the user that runs the test.
const nobody = 65534

// prefix is the prefix of the names of homes.
const prefix = "usertest-"

// foreign is a directory of root in the home.
const foreign = "foreign"

// Foreign returns a home with a directory of root that contains a file: foreign/file. It skips the test if root doesn't
// run it. Call [Ordinary] first.
func Foreign(t *testing.T) (home string) {
	t.Helper()
	home = osEnv(t).Get("HOME")
	if _, err := os.Lstat(filepath.Join(home, foreign)); err != nil || !strings.HasPrefix(filepath.Base(home), prefix) {
		t.Skip("only root can create directories of another user")
	}
	return home
}

// Ordinary reports whether an ordinary user runs the test. If root does, it returns false, after it has run the test in
// another process as an ordinary user.
func Ordinary(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	home, err := os.MkdirTemp("", prefix) //nolint:usetesting // root's temporary directories are closed to others
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	require.NoError(t, os.Mkdir(filepath.Join(home, foreign), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, foreign, "file"), []byte("foreign\n"), 0o644))
	require.NoError(t, os.Chown(home, nobody, nobody))
	program, err := os.Open("/proc/self/exe") // its directory is closed to others
	require.NoError(t, err)
	defer func() { _ = program.Close() }()
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", "-test.v", fmt.Sprintf("-test.run=^%s$", t.Name()))
	cmd.ExtraFiles = []*os.File{program}
	cmd.Env = append(osEnv(t).Environ, "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "as an ordinary user: %s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "%s", out)
	return false
}

func osEnv(t *testing.T) env.Env {
	t.Helper()
	e, err := env.OS()
	require.NoError(t, err)
	return e
}
