//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// importing runs "uwf import-original" of a program in a directory.
func importing(t *testing.T, bin, path string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = cli.Main(t.Context(), env.Env{
		Args: append([]string{"import-original"}, args...), Dir: t.TempDir(), Exe: filepath.Join(bin, "uwf"),
		Environ: []string{"HOME=" + bin, "PATH=" + path},
		Stdin:   strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
	})
	return status, out.String(), errs.String()
}

// The importer is a separate program, next to uwf or in PATH. It receives the flags, and its output and
// status become those of uwf.
func TestImportOriginalRunsAProgram(t *testing.T) {
	empty, bin := t.TempDir(), t.TempDir()
	status, _, stderr := importing(t, empty, empty)
	require.Equal(t, protocol.CodeNotFound.ExitCode(), status)
	prosetest.Text(t, stderr)
	require.Contains(t, stderr, "hint: go install")

	fake := "#!/bin/sh\necho \"$@\"\necho told >&2\nexit 7\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "uwf-import-original"), []byte(fake), 0o755))
	for name, where := range map[string][2]string{"beside it": {bin, empty}, "on the PATH": {empty, bin}} {
		status, stdout, stderr := importing(t, where[0], where[1], "--dry-run", "--home", "/new", "--ocas", "/o", "--uwf", "/u", "--format", "text")
		require.Equal(t, 7, status, name)
		require.Equal(t, "--home /new --format text --ocas=/o --uwf=/u --dry-run=true\n", stdout, name)
		require.Equal(t, "told\n", stderr, name)
	}
}
