package gocache

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain makes the test program a GOCACHEPROG.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == Argument {
		if err := Serve(os.Stdin, os.Stdout, os.Getenv("GOCACHE"), os.Args[2], time.Now); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// module is a package without imports, so that nothing else is compiled.
type module struct {
	*testing.T
	dir string
}

// compiles reports whether a build with a cache, and with a user's cache if that isn't "", runs the compiler.
func (m module) compiles(own, users string) bool {
	m.Helper()
	cmd := exec.Command("go", "build", "-x", ".")
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOCACHE="+own, "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	if users != "" {
		exe, err := os.Executable()
		require.NoError(m, err)
		cmd.Env = append(cmd.Env, "GOCACHEPROG="+exe+" "+Argument+" "+users)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(m, err, "%s", out)
	return strings.Contains(string(out), "/compile")
}

// The go command itself is the judge of format and protocol.
func TestBuild(t *testing.T) {
	t.Parallel()
	m := module{t, t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "go.mod"), []byte("module example.com/a\ngo 1.24\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "a.go"), []byte("package a\n\nfunc A() int { return 1 }\n"), 0o600))
	users, own, other := t.TempDir(), t.TempDir(), t.TempDir()
	require.True(t, m.compiles(users, ""))
	require.False(t, m.compiles(own, users), "taken from the user's cache")
	require.False(t, m.compiles(own, ""), "copied")
	require.True(t, m.compiles(other, t.TempDir()), "nowhere")
	require.False(t, m.compiles(other, ""), "stored, in the go command's format")

	outputs, err := filepath.Glob(filepath.Join(users, "*", "*-d"))
	require.NoError(t, err)
	require.NotEmpty(t, outputs)
	for _, path := range outputs {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), len(content)), 0o600))
	}
	require.True(t, m.compiles(t.TempDir(), users), "a damaged output is a miss")
}

func TestServe(t *testing.T) {
	t.Parallel()
	action, content := bytes.Repeat([]byte{1}, sha256.Size), []byte("content")
	output := sha256.Sum256(content)
	now := time.Unix(1, 5)
	serve := func(dir, users string, values ...any) (answers []response) {
		var in, out bytes.Buffer
		for _, v := range values {
			require.NoError(t, json.NewEncoder(&in).Encode(v))
		}
		require.NoError(t, Serve(&in, &out, dir, users, func() time.Time { return now }))
		for d := json.NewDecoder(&out); d.More(); {
			var r response
			require.NoError(t, d.Decode(&r))
			answers = append(answers, r)
		}
		require.Equal(t, []string{"get", "put", "close"}, answers[0].KnownCommands)
		return answers[1:]
	}
	get := request{ID: 1, Command: "get", ActionID: action}
	put := request{ID: 2, Command: "put", ActionID: action, OutputID: output[:], BodySize: int64(len(content))}
	dir := t.TempDir()
	answers := serve(dir, t.TempDir(), get, put, content, get, request{ID: 4, Command: "close"}, get)
	require.Len(t, answers, 4, "nothing is answered after close")
	require.Equal(t, response{ID: 1, Miss: true}, answers[0])
	path := answers[1].DiskPath
	require.Equal(t, response{ID: 2, DiskPath: path}, answers[1])
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, stored)
	require.Equal(t, path, answers[2].DiskPath)
	require.Equal(t, output[:], answers[2].OutputID)
	require.EqualValues(t, len(content), answers[2].Size)
	require.True(t, now.Equal(*answers[2].Time))

	empty := sha256.Sum256(nil)
	nothing := request{ID: 3, Command: "put", ActionID: bytes.Repeat([]byte{2}, sha256.Size), OutputID: empty[:]}
	answers = serve(dir, "", nothing, request{ID: 4, Command: "put", ActionID: []byte{1}, OutputID: output[:]}, request{ID: 5, Command: "get"})
	require.FileExists(t, answers[0].DiskPath)
	require.NotEmpty(t, answers[1].Err, "an id of another length")
	require.True(t, answers[2].Miss)

	// Entries that other programs damaged are misses.
	at := name(dir, action, "a")
	entry, err := os.ReadFile(at)
	require.NoError(t, err)
	for _, damaged := range []string{"", "v2" + string(entry[2:]), string(entry) + "x", string(entry[:len(entry)-1]), strings.Repeat("a ", 5)} {
		require.NoError(t, os.WriteFile(at, []byte(damaged), 0o600))
		require.True(t, serve(dir, "", get)[0].Miss, "%q", damaged)
		require.True(t, serve(t.TempDir(), dir, get)[0].Miss, "%q", damaged)
	}
	require.NoError(t, os.Truncate(at, 1<<40))
	require.True(t, serve(dir, "", get)[0].Miss, "too large to read")
	require.NoError(t, os.Remove(at))
	require.NoError(t, os.WriteFile(at+"2", entry, 0o600))
	require.NoError(t, os.Symlink(at+"2", at))
	require.True(t, serve(dir, "", get)[0].Miss, "a link, which could lead to a device")
	require.NoError(t, os.Rename(at+"2", at))
	require.False(t, serve(dir, "", get)[0].Miss)
	require.NoError(t, os.Truncate(path, 3))
	require.True(t, serve(dir, "", get)[0].Miss, "an output that is cut off")
}
