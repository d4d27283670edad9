//go:build unix

package acp_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// uwf runs no commands for an agent: they would not be confined like the agent.
func TestNoTerminals(t *testing.T) {
	t.Parallel()
	a := play(t, "", "terminal")
	a.step().Succeeded()
	require.Contains(t, a.journal(), `{"code":-32601,"message":"uwf does not serve terminal/create"}`)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	a := play(t, "", "files")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(a.Cwd, name), []byte(text), 0o600))
	}
	write("a.txt", "hello")
	write("../outside.txt", "secret")
	write("large.txt", strings.Repeat(strings.Repeat("x", 1023)+"\n", 9<<10))
	require.NoError(t, os.Symlink("../outside.txt", filepath.Join(a.Cwd, "link")))
	require.NoError(t, os.Symlink("..", filepath.Join(a.Cwd, "up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(a.Cwd, "pipe"), 0o600))
	a.step().Succeeded()
	var lines []string
	for line := range strings.Lines(a.journal()) {
		if strings.HasPrefix(line, "read ") || strings.HasPrefix(line, "write ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	require.Equal(t, []string{
		"read a.txt: true", "read outside.txt: false", "read hostname: false", "read link: false", "read none.txt: false",
		"read pipe: false", "read large.txt: false", "read large.txt: true",
		"write new/b.txt: true", "write ../outside.txt: false", "write link: false", "write up/c.txt: false",
	}, lines)
	outside, err := os.ReadFile(filepath.Join(a.Cwd, "..", "outside.txt"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(outside))
	require.Contains(t, a.journal(), `"code":-32002`, "a file that is missing is told apart")
}

// A permission request is answered at once, by the kind of the tool.
func TestPermission(t *testing.T) {
	t.Parallel()
	for permission, want := range map[string]struct {
		mode    string
		answers []string // read, edit, execute, other, edit outside, unknown options
	}{
		"full":      {"yolo", []string{"selected yes", "selected yes", "selected yes", "selected yes", "selected yes", "cancelled"}},
		"edits":     {"acceptEdits", []string{"selected yes", "selected yes", "selected no", "selected no", "selected no", "cancelled"}},
		"read-only": {"plan", []string{"selected yes", "selected no", "selected no", "selected no", "selected no", "cancelled"}},
	} {
		t.Run(permission, func(t *testing.T) {
			t.Parallel()
			a := play(t, "permission: "+permission, "permission")
			a.step().Succeeded()
			require.Contains(t, a.journal(), "mode "+want.mode+"\n")
			kinds := []string{"read", "edit", "execute", "other", "edit", "never"}
			for i, answer := range want.answers {
				require.Contains(t, a.journal(), strconv.Itoa(i)+" "+kinds[i]+": "+answer+"\n")
			}
			require.Contains(t, a.journal(), "no options: cancelled\n")
			require.Contains(t, a.journal(), "nothing: cancelled\n")
		})
	}
}

// Requests outside the permissions readonly and edits are rejected as well.
func TestPermissionOfRequests(t *testing.T) {
	t.Parallel()
	for permission, writes := range map[string]bool{"read-only": false, "edits": true} {
		t.Run(permission, func(t *testing.T) {
			t.Parallel()
			a := play(t, "permission: "+permission, "files")
			a.step().Succeeded()
			require.Contains(t, a.journal(), "write new/b.txt: "+strconv.FormatBool(writes))
		})
	}
}
