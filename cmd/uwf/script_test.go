package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/box/inside"
	"github.com/united-workforce/uwf/utilagent/builtin"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// TestMain lets the test binary act as each program of the stories, so that a script runs real processes.
func TestMain(m *testing.M) {
	testscript.Main(tmpfstest.In(prosetest.Of(m)), map[string]func(){
		"uwf":             main,
		"uwf-mock":        mock.Run,
		"gate":            gate,
		"uwf-remote-file": remoteFile, "uwf-remote-kill": remoteKill,
		"uwf-builtin": func() { agentkit.Run(builtin.Options()) },
		"uwf-llm":     builtin.RunLLM,
		"uwf-box":     func() { os.Exit(inside.Main(os.Args[1:], os.Stderr)) },
	})
}

// disk is the directory for files that must not be in memory.
var disk = os.TempDir()

// onDisk marks the stories that confine programs: those share no memory, so they cannot use a tmpfs.
const onDisk = "# On the disk: "

// TestScripts runs the stories in testdata/script, one scenario per file, each with a new home.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	var inMemory, confined []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasPrefix(string(text), onDisk) {
			confined = append(confined, file)
		} else {
			inMemory = append(inMemory, file)
		}
	}
	testscript.Run(t, stories(inMemory))
	require.NoError(t, os.Setenv("GOTMPDIR", disk)) // testscript reads it immediately
	testscript.Run(t, stories(confined))
	require.NoError(t, os.Unsetenv("GOTMPDIR"))
}

// stories returns the parameters for some of the stories.
func stories(files []string) testscript.Params {
	return testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name != "namespaces" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return namespaces(), nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector otherwise delays each exit by a second
			e.Setenv("UWF_HOME", filepath.Join(e.WorkDir, "uwf"))
			e.Setenv("EXAMPLES", examplesDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   cmdExits,
			"json":    cmdJSON,
			"jsonis":  cmdJSONIs,
			"flipbit": cmdFlipBit,
			"forge":   cmdForge,
			"damage":  cmdDamage,
			"model":   cmdModel,
			"program": cmdProgram,
			"prose":   prosetest.StoryProse[*testscript.TestScript],
			"code":    prosetest.StoryCode[*testscript.TestScript],
		},
	}
}

// cmdExits runs a program that must exit with a given status.
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit status %d", code)
	}
}

// namespaces reports whether the programs of the stories can use namespaces on this system.
var namespaces = sync.OnceValue(func() bool {
	path, err := exec.LookPath(box.Program)
	return err == nil && box.Probe(path) == nil
})

var examplesDir = func() string {
	dir, err := filepath.Abs("../../examples")
	if err != nil {
		panic(err)
	}
	return dir
}()

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

// failing makes a story fail instead of a test.
type failing struct{ *testscript.TestScript }

func (f failing) Errorf(format string, args ...any) { f.Logf(format, args...) }
func (f failing) FailNow()                          { f.Fatalf("failed") }

// cmdFlipBit damages a node: flipbit <hash> [<home>] flips a bit in the middle of its record.
func cmdFlipBit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: flipbit hash [home]")
	}
	home := ts.Getenv("UWF_HOME")
	if len(args) == 2 {
		home = ts.MkAbs(args[1])
	}
	castest.FindRecord(failing{ts}, filepath.Join(home, "cas"), cas.Hash(args[0])).Flip()
}

// cmdForge puts the content of another node in the place of a node: forge <hash> <other hash> <home>.
func cmdForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: forge hash other home")
	}
	store := filepath.Join(ts.MkAbs(args[2]), "cas")
	other := castest.FindRecord(failing{ts}, store, cas.Hash(args[1]))
	castest.FindRecord(failing{ts}, store, cas.Hash(args[0])).Replace(other.Body())
}

// cmdDamage flips a bit in the middle of a file: damage path.
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage file")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.WriteFile(path, data, 0o644))
}

// cmdModel starts a model that gives the same answer to every request: "model VARIABLE answer" sets the
// variable to its base URL. It writes a line per request to the file "asked".
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: model VARIABLE answer")
	}
	reply, err := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": args[1]}, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 7},
	})
	ts.Check(err)
	asked, err := os.OpenFile(ts.MkAbs("asked"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	ts.Check(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(asked, "%s\n", question)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply)
	}))
	ts.Defer(func() { server.Close(); _ = asked.Close() })
	ts.Setenv(args[0], server.URL)
}

// cmdProgram puts a command of the project on PATH, which is built for it.
func cmdProgram(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: program NAME")
	}
	dir, err := clitest.Program(args[0])
	ts.Check(err)
	ts.Setenv("PATH", dir+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

func lookup(ts *testscript.TestScript, path string) string {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for _, key := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(node) {
				ts.Fatalf("no element %q in an array of %d", key, len(node))
			}
			v = node[i]
		default:
			ts.Fatalf("no %q in %v", key, v)
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	out, err := json.Marshal(v)
	ts.Check(err)
	return string(out)
}

// gate is a program of the stories: it prints its prompt, and continues when the number in a file is at least
// its own.
func gate() {
	file, number, word := os.Args[1], os.Args[2], os.Args[3]
	fmt.Println(word)
	mine, _ := strconv.Atoi(number)
	for {
		text, _ := os.ReadFile(file)
		if open, _ := strconv.Atoi(strings.TrimSpace(string(text))); mine <= open {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
