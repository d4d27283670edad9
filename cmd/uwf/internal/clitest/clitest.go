// Package clitest runs uwf command lines in the test's process; each test has its own home. "uwf step put" makes the
// steps, without an agent.
package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// running is held while a command runs, because the command-line library has a global flag that each run
// writes.
var running sync.Mutex

// World is a home, a working directory and a clock. Its methods fail the test on unexpected errors.
type World struct {
	T       testing.TB
	Home    string
	Dir     string
	Environ []string
	Stdin   string
	// Clock is the time of the next command; each command takes a second.
	Clock time.Time

	rand io.Reader
}

// Result is the result of a command.
type Result struct {
	Line   string
	Status int
	Out    string        // stdout
	Err    string        // stderr
	Code   protocol.Code // of the error; set by [World.Fail]
}

// New returns a world whose home does not exist yet.
func New(t testing.TB) *World {
	process, err := env.OS()
	require.NoError(t, err)
	return &World{
		T: t, Home: filepath.Join(t.TempDir(), "home"), Dir: t.TempDir(), Clock: time.UnixMilli(1_800_000_000_000),
		Environ: []string{"HOME=" + t.TempDir(), "PATH=" + process.Get("PATH")}, rand: rand.NewChaCha8([32]byte{}),
	}
}

// WithProgram builds a command of the project and puts it on PATH.
func (w *World) WithProgram(name string) *World {
	dir, err := Program(name)
	require.NoError(w.T, err)
	process, err := env.OS()
	require.NoError(w.T, err)
	w.Environ = append(w.Environ, "PATH="+dir+string(os.PathListSeparator)+process.Get("PATH"))
	return w
}

// Program builds a command of the project, once for all tests of the process, and returns its directory.
func Program(name string) (dir string, err error) {
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		if built.dir, err = os.MkdirTemp("", "uwf-programs-"); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(built.dir, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), protocol.ModulePath+"/cmd/"+name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return dir, nil
}

// built has the directory of the programs built so far. Package tmpfstest removes it with the test's other files.
var built struct {
	sync.Mutex
	dir string
}

// Other returns a world with another home and the same working directory. Its clock starts at this one's time.
func (w *World) Other() *World {
	other := *w
	other.Home = filepath.Join(w.T.TempDir(), "home")
	return &other
}

// File writes a file to the working directory and returns its path.
func (w *World) File(name, text string) string {
	w.T.Helper()
	path := filepath.Join(w.Dir, name)
	require.NoError(w.T, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Read reads a file in the working directory.
func (w *World) Read(name string) string {
	w.T.Helper()
	data, err := os.ReadFile(filepath.Join(w.Dir, name))
	require.NoError(w.T, err)
	return string(data)
}

// Run runs a command line; spaces separate its words. more has words with spaces.
func (w *World) Run(line string, more ...string) Result {
	w.T.Helper()
	return w.run(&stdout{}, line, more)
}

// Fail runs a command line that should fail, with --json unless it has --format. The result's Code is the code of
// the error, and Err is the error as text.
func (w *World) Fail(line string, more ...string) Result {
	w.T.Helper()
	words := line
	if !strings.Contains(line, "--format ") {
		words = "--json " + line
	}
	r := w.run(&stdout{}, words, more)
	text, code := prosetest.Plain("uwf", r.Err)
	r.Line, r.Err, r.Code = line, text, protocol.Code(code)
	return r
}

// stdout is a standard output whose nth write fails; 0 means none does.
type stdout struct {
	text   bytes.Buffer
	writes int
	fails  int
}

func (s *stdout) Write(p []byte) (int, error) {
	if s.writes++; s.writes == s.fails {
		return 0, syscall.EIO
	}
	return s.text.Write(p)
}

// Unprinted runs a command line that only prints, as JSON and as text, once for each of its writes to stdout
// with that write failing. The command must fail each time.
func (w *World) Unprinted(line string) {
	w.T.Helper()
	for _, format := range []string{"json", "text"} {
		words := []string{"--format", format}
		whole := &stdout{}
		if r := w.run(whole, line, words); r.Status != 0 || whole.writes == 0 {
			w.T.Fatalf("uwf %s: exit status %d after %d writes: %s", line, r.Status, whole.writes, r.Err)
		}
		for fails := 1; fails <= whole.writes; fails++ {
			if r := w.run(&stdout{fails: fails}, line, words); r.Status == 0 {
				w.T.Errorf("uwf %s --format %s: write %d of %d failed without an error", line, format, fails, whole.writes)
			}
		}
	}
}

// Lossy runs command lines that only print, once without each of the home's nodes. A command that succeeds
// must print the same as with all nodes; otherwise it must report a corrupt store and print no result.
func (w *World) Lossy(lines ...string) {
	w.T.Helper()
	var nodes []cas.Hash
	for h, err := range w.Store().All(w.T.Context(), "") {
		require.NoError(w.T, err)
		nodes = append(nodes, h)
	}
	require.NotEmpty(w.T, nodes)
	for _, line := range lines {
		whole, needed := w.Run(line), 0
		require.Zero(w.T, whole.Status, whole.Err)
		for _, h := range nodes {
			r := w.without(h, line)
			if r.Status == protocol.CodeCorrupt.ExitCode() {
				needed++
			} else if r.Status != 0 || r.Out != whole.Out {
				w.T.Errorf("%s without %s: %d: %s%s", line, h, r.Status, r.Out, r.Err)
			}
		}
		if needed == 0 {
			w.T.Errorf("%s: unneeded", line)
		}
	}
}

// without runs a command line while a node is lost.
func (w *World) without(h cas.Hash, line string) Result {
	w.T.Helper()
	lost := castest.FindRecord(w.T, filepath.Join(w.Home, "cas"), h)
	segment, err := os.ReadFile(lost.Path)
	require.NoError(w.T, err)
	lost.Lose()
	r := w.Run(line)
	require.NoError(w.T, os.WriteFile(lost.Path, segment, 0o600))
	return r
}

// Spoilt runs command lines in copies of the home. In each copy, one file is replaced by a directory or one
// directory by a file. It returns the exit statuses, one line per copy.
func (w *World) Spoilt(lines ...string) string {
	w.T.Helper()
	text := ""
	for _, name := range []string{
		"threads.yaml", "history.jsonl", "facts.jsonl", "registry.yaml", "trusted.jsonl", "config.yaml", "remotes.yaml", "locks", "runs", "sessions",
		"cas/format.json", "cas/log",
	} {
		text += name + ":"
		for _, line := range lines {
			other := w.Other()
			require.NoError(w.T, os.CopyFS(other.Home, os.DirFS(w.Home)))
			spoil(w.T, filepath.Join(other.Home, filepath.FromSlash(name)))
			text += fmt.Sprintf(" %d", other.Run(line).Status)
		}
		text += "\n"
	}
	return text
}

// spoil replaces a file by a directory, or a directory by a file.
func spoil(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	if filepath.Ext(path) != "" {
		require.NoError(t, os.Mkdir(path, 0o700))
		path = filepath.Join(path, "inside")
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
}

func (w *World) run(out *stdout, line string, more []string) Result {
	w.T.Helper()
	var stderr bytes.Buffer
	w.Clock = w.Clock.Add(time.Second)
	now := w.Clock
	running.Lock()
	defer running.Unlock()
	status := cli.Main(w.T.Context(), env.Env{
		Args: append(append([]string{"--home", w.Home}, strings.Fields(line)...), more...), Dir: w.Dir, Environ: w.Environ,
		Now: func() time.Time { return now }, Rand: w.rand,
		Stdin: strings.NewReader(w.Stdin), Stdout: out, Stderr: &stderr,
	})
	return Result{Line: line, Status: status, Out: out.text.String(), Err: stderr.String()}
}

// Must runs a command line that must succeed and returns the JSON object that it prints, with numbers as
// json.Number.
func (w *World) Must(line string, more ...string) map[string]any {
	w.T.Helper()
	r := w.Run(line, more...)
	require.Zero(w.T, r.Status, "uwf %s: %s%s", line, r.Out, r.Err)
	return w.JSON(r.Out)
}

// JSON decodes an object, with numbers as json.Number.
func (w *World) JSON(text string) map[string]any {
	w.T.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var object map[string]any
	require.NoError(w.T, d.Decode(&object), text)
	return object
}

// Loop is a workflow with one role that can repeat.
const Loop = `name: loop
description: Works.
roles:
  worker:
    description: Works.
    goal: Work.
    capabilities: [working]
    procedure: Work.
    output: What was done.
    frontmatter:
      type: object
      properties: {$status: {enum: [more, done]}, n: {type: integer}}
      required: [$status, n]
graph:
  $START: {_: {role: worker, prompt: "Go."}}
  worker:
    more: {role: worker, prompt: "Again."}
    done: {role: $END, prompt: "Done."}
`

// Thread starts a thread of [Loop] and returns its ID.
func (w *World) Thread(prompt string) string {
	w.T.Helper()
	w.File("loop.yaml", Loop)
	w.Must("workflow put loop.yaml")
	return w.Must("thread start loop -p", prompt)["thread"].(string)
}

// Head returns the head of a thread.
func (w *World) Head(thread string) protocol.Hash {
	w.T.Helper()
	h, err := w.heads().Head(w.T.Context(), thread)
	require.NoError(w.T, err)
	return h
}

func (w *World) heads() *fileheads.Heads { return fileheads.Open(w.Home, durable.OS()) }

// Store opens the node store of the home.
func (w *World) Store() *fsstore.Store {
	w.T.Helper()
	s, err := fsstore.Open(w.T.Context(), filepath.Join(w.Home, "cas"), fsstore.Options{Home: w.Home})
	require.NoError(w.T, err)
	return s
}

// Payload reads a node of the home's store.
func Payload[P protocol.Payload](w *World, h protocol.Hash) P {
	w.T.Helper()
	p, err := cas.Read[P](w.T.Context(), w.Store(), h)
	require.NoError(w.T, err)
	return p
}

// Agent returns the world as seen by the agent of a thread's next step.
func (w *World) Agent(thread, role string) *World {
	w.T.Helper()
	agent := *w
	agent.Environ = append([]string{
		protocol.EnvHead + "=" + string(w.Head(thread)), protocol.EnvThread + "=" + thread, protocol.EnvRole + "=" + role, "UWF_HOME=" + w.Home,
	}, w.Environ...)
	return &agent
}

// Step makes the next step of a thread of [Loop]: the worker answers n and text. It returns the step's hash.
func (w *World) Step(thread string, n int, text string) protocol.Hash {
	w.T.Helper()
	agent := w.Agent(thread, "worker")
	agent.Stdin = fmt.Sprintf("---\n$status: more\nn: %d\n---\n%s\n", n, text)
	h := protocol.Hash(agent.Must("step put --agent uwf-test --output - --detail", w.detail(text))["stepHash"].(string))
	w.Clock = agent.Clock
	w.Move(thread, h)
	return h
}

// Move moves the head of a thread.
func (w *World) Move(thread string, to protocol.Hash) {
	w.T.Helper()
	require.NoError(w.T, w.heads().Move(w.T.Context(), thread, w.Head(thread), to))
}

func (w *World) detail(text string) string {
	w.T.Helper()
	data, err := json.Marshal(map[string]any{"turns": []any{map[string]any{"role": "assistant", "content": text}}})
	require.NoError(w.T, err)
	return w.File("detail.json", string(data))
}
