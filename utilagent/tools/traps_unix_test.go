//go:build unix

package tools

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// traps is a workspace full of traps for careless tools.
func traps(t *testing.T) (*Workspace, *Registry) {
	t.Helper()
	w, r := searching(t, map[string]string{
		"in.txt": "mine\n", "dir/f": "f\n", "a\nb.txt": "newline\n", " spaced ": "spaces\n", "README.md": "readme\n", "-n": "dash\n", "$(id)": "shell\n",
	})
	dir, base := w.Dir(), filepath.Dir(w.Dir())
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, target := range map[string]string{
		"out": "../secret.txt", "abs": filepath.Join(base, "secret.txt"), "up": base, "dir/up": "../..", "root": "/", "proc": "/proc/self/root", "cwd": "/proc/self/cwd",
		"fd": "/proc/self/fd/0", "loop": "loop", "ping": "pong", "pong": "ping", "new": filepath.Join(base, "made.txt"), "null": "/dev/null", "through": "up/secret.txt",
	} {
		require.NoError(t, os.Symlink(target, at(name)))
	}
	require.NoError(t, os.Link(filepath.Join(base, "secret.txt"), at("hard")))
	require.NoError(t, os.Mkdir(at("main.go"), 0o755))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o666))
	require.NoError(t, os.Mkdir(at("piped"), 0o755))
	require.NoError(t, syscall.Mkfifo(at("piped/.gitignore"), 0o666))
	require.NoError(t, os.WriteFile(at("piped/f"), []byte("mine too\n"), 0o644))
	require.NoError(t, os.WriteFile(at("closed"), []byte("closed\n"), 0o644))
	require.NoError(t, os.Chmod(at("closed"), 0))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName(t, dir), Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	sparse, err := os.Create(at("sparse"))
	require.NoError(t, err)
	require.NoError(t, sparse.Truncate(10<<30))
	require.NoError(t, sparse.Close())
	tailed, err := os.Create(at("tailed"))
	require.NoError(t, err)
	_, err = tailed.WriteString(strings.Repeat("text\n", 2000))
	require.NoError(t, err)
	_, err = tailed.WriteAt([]byte("\nlast but one\nlast\n"), 10<<30)
	require.NoError(t, err)
	require.NoError(t, tailed.Close())
	return w, r
}

// socketName returns the path of the socket "socket". A long path would exceed the system's limit, so it uses
// the working directory's descriptor.
func socketName(t *testing.T, dir string) string {
	t.Helper()
	short, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(short)) })
	require.NoError(t, os.Symlink(dir, filepath.Join(short, "w")))
	return filepath.Join(short, "w", "socket")
}

// Each access ends at once with a useful error, and nothing outside is changed.
func TestAWorkspaceFullOfTraps(t *testing.T) {
	t.Parallel()
	const out = `^Error: .*outside the workspace`
	for _, c := range []struct{ path, read, write string }{
		{"../secret.txt", out, out},
		{"dir/../../secret.txt", out, out},
		{"/etc/passwd", out, out},
		{"/proc/self/root/etc/passwd", out, out},
		{"/proc/self/cwd/secret.txt", out, out},
		{"out", out, out},
		{"abs", out, out},
		{"up/secret.txt", out, out},
		{"dir/up/secret.txt", out, out},
		{"root/etc/passwd", out, out},
		{"proc/etc/passwd", out, out},
		{"cwd/tools.go", out, out},
		{"fd", `^Error: `, `^Error: `},
		{"null", out, out},
		{"through", out, out},
		{"new", out + `|^Error: there is no new`, out + "|^(Wrote|Replaced)"},
		{"loop", `^Error: loop is a link that leads back to itself`, `^Error: loop is a link that leads back to itself`},
		{"ping", `leads back to itself`, `leads back to itself`},
		{"pipe", `^Error: pipe is a pipe, not a regular file: it cannot be read`, `^Error: pipe is a pipe, not a regular file: it cannot be written`},
		{"socket", `^Error: socket is a socket, not a regular file`, `^Error: socket is a socket, not a regular file`},
		{"main.go", `^\[main.go is a directory`, `^Error: main.go is a directory`},
		{"main.go/", `^\[main.go/ is a directory`, `^Error: main.go/ is a directory`},
		{"in.txt/", `^1→mine|^Error: `, `^Replaced|^Error: `},
		{"in.txt/x", `^Error: (in.txt/x: a part of this path is a file|there is no)`, `^Error: in.txt/x: a part of this path is a file`},
		{"closed", `^1→closed|^Error: closed: permission denied`, `^Error: closed is read-only`},
		{"sparse", `^Error: sparse is a binary file of 10737418240 bytes`, `^Replaced`},
		{"tailed", `^1→text\n(?s:.*)\[lines 1-2000; the file has 10737418259 bytes, and its lines were not counted`, `^Replaced`},
		{"a\nb.txt", `^1→newline`, `^Replaced "a\\nb.txt"`},
		{" spaced ", `^1→spaces`, `^Replaced " spaced "`},
		{" in.txt\n", `^1→mine`, `^Replaced`},
		{"readme.md", `^1→readme|^Error: there is no readme.md. Did you mean README.md\?`, `^(Replaced|Wrote)`},
		{"-n", `^1→dash`, `^Replaced -n`},
		{"$(id)", `^1→shell`, `^Replaced`},
		{"x\x00y", `^Error: the path is empty or not a path`, `^Error: the path is empty or not a path`},
		{"", `^Error: `, `^Error: `},
		{".", `^\[\. is a directory`, `^Error: \. is a directory`},
		{strings.Repeat("x", 300), `^Error: the path, or a name in it, is too long`, `^Error: the path, or a name in it, is too long`},
		{strings.Repeat("y/", 3000) + "z", `^Error: the path is longer than 4096 bytes`, `^Error: the path is longer than 4096 bytes`},
	} {
		w, r := traps(t)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("%q blocks", c.path))
		for _, do := range []struct{ tool, want string }{{"read_file", c.read}, {"write_file", c.write}} {
			result, err := r.Call(ctx, do.tool, args{"path": c.path, "content": "x\n"})
			require.NoError(t, err, "%s %q", do.tool, c.path)
			require.Regexp(t, do.want, result.Text, "%s %q", do.tool, c.path)
			require.NotContains(t, result.Text, "secret\n", c.path)
		}
		for _, tool := range []string{"edit_file", "list_dir", "grep"} {
			result, err := r.Call(ctx, tool, args{"path": c.path, "old_string": "secret", "new_string": "x", "pattern": "^secret$"})
			require.NoError(t, err, "%s %q", tool, c.path)
			require.NotContains(t, strings.TrimPrefix(result.Text, "hard:1: secret"), ": secret", "%s %q", tool, c.path)
		}
		cancel()
		requireUntouched(t, w)
	}
}

func requireUntouched(t *testing.T, w *Workspace) {
	t.Helper()
	base := filepath.Dir(w.Dir())
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Len(t, entries, 2, "something was made outside")
	b, err := os.ReadFile(filepath.Join(base, "secret.txt"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(b))
}

// A search skips every trap.
func TestSearchAmongTraps(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"alone", "git"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := traps(t)
			if name == "git" {
				git(t, w.Dir(), "init", "-q")
			}
			text := call(t, r, "grep", args{"pattern": "mine|secret|newline|closed"})
			require.Contains(t, text, "in.txt:1: mine\n")
			require.Contains(t, text, "piped/f:1: mine too\n")
			require.Contains(t, text, "\"a\\nb.txt\":1: newline\n")
			require.Contains(t, text, "hard:1: secret\n", "a hard link is a file of the workspace")
			require.NotContains(t, strings.ReplaceAll(text, "hard:1: secret", ""), "secret")
			require.Contains(t, text, "[2 files over 10 MB were not searched]")
			require.Contains(t, call(t, r, "glob", args{"pattern": "*.txt"}), "\"a\\nb.txt\"\nin.txt\n")
			list := call(t, r, "list_dir", args{"depth": 3.0})
			for _, line := range []string{"pipe (pipe)", "socket (socket)", "up -> ", "\"a\\nb.txt\"  8", "sparse  10737418240", "main.go/"} {
				require.Contains(t, "\n"+list, "\n"+line)
			}
			requireUntouched(t, w)
		})
	}
}

func TestTheEndOfAHugeFile(t *testing.T) {
	t.Parallel()
	_, r := traps(t)
	prosetest.Text(t, call(t, r, "read_file", args{"path": "tailed", "offset": 5000.0}))
}

func TestAHundredThousandFilesInOneDirectory(t *testing.T) {
	t.Parallel()
	w, r := searching(t, nil)
	many := filepath.Join(w.Dir(), "many")
	require.NoError(t, os.Mkdir(many, 0o755))
	one := filepath.Join(many, "f00000.txt")
	require.NoError(t, os.WriteFile(one, []byte("needle\n"), 0o644))
	for i := 1; i < 100_000; i++ {
		name := filepath.Join(many, fmt.Sprintf("f%05d.txt", i))
		if i%30_000 == 0 {
			require.NoError(t, os.WriteFile(name, []byte("needle\n"), 0o644)) // the number of links to a file is limited
			one = name
			continue
		}
		require.NoError(t, os.Link(one, name))
	}
	prosetest.Text(t, call(t, r, "list_dir", args{"path": "many"}))
	prosetest.Text(t, call(t, r, "read_file", args{"path": "many/f00O17.txt"}))
	require.Contains(t, call(t, r, "glob", args{"pattern": "f9999?.txt"}), "many/f99990.txt\n")
	prosetest.Text(t, call(t, r, "grep", args{"pattern": "needle", "limit": 1.0}))
}
