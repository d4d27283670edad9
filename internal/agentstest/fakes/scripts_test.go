package fakes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary act as each of the programs.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"codex": codex, "gemini": gemini, "opencode": opencode, "cursor-agent": cursor, "hermes": hermes, "claude": claude,
	})
}

// TestScripts runs the stories in testdata/script with uwf and the adapters built and on PATH, as for a user.
func TestScripts(t *testing.T) {
	t.Parallel()
	bin := build(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("BIN", bin)
			e.Setenv("HOME", filepath.Join(e.WorkDir, "user"))
			e.Setenv("UWF_HOME", filepath.Join(e.WorkDir, "uwf"))
			fakes := filepath.Join(e.WorkDir, "fakes") // the fakes' state, in a directory that their agent may write
			e.Setenv("FAKES", fakes)
			if err := os.Mkdir(fakes, 0o700); err != nil {
				return err
			}
			e.Setenv("HERMES_HOME", filepath.Join(e.WorkDir, "user", ".hermes"))
			return os.Mkdir(filepath.Join(e.WorkDir, "user"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"json": cmdJSON, "jsonis": cmdJSONIs, "longfile": cmdLongFile},
	})
}

// build builds the commands that the stories use.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, name := range []string{"uwf", "uwf-codex", "uwf-gemini", "uwf-opencode", "uwf-cursor", "uwf-hermes", "uwf-claude-code"} {
		args = append(args, "../../../cmd/"+name)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// cmdJSON sets a variable from the last stdout, as in "json THREAD thread" or with the path steps.0.hash.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json VARIABLE path")
	}
	ts.Setenv(args[0], lookup(ts, args[1]))
}

// cmdJSONIs compares a value in the last stdout: jsonis status completed.
func cmdJSONIs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: jsonis path value")
	}
	if got := lookup(ts, args[0]); (got == args[1]) == neg {
		ts.Fatalf("%s is %q", args[0], got)
	}
}

// cmdLongFile writes a file too long for a command line: longfile name.
func cmdLongFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: longfile name")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat("A very long task. ", 20_000)), 0o600))
}

func lookup(ts *testscript.TestScript, path string) string {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for part := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(at) || i < -len(at) {
				ts.Fatalf("no %s in a list of %d", part, len(at))
			}
			v = at[(i+len(at))%len(at)]
		default:
			ts.Fatalf("no %s in %s", part, path)
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	ts.Check(err)
	return string(data)
}
