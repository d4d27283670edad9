//go:build agents

package agentstest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// workflow has two roles that alternate until the critic is content.
const workflow = `name: talk
description: two roles
roles:
  writer:
    { description: writes, goal: Write., capabilities: [writing], procedure: Write., output: a word,
      frontmatter: { type: object, properties: { $status: { const: done }, word: { type: string } }, required: [$status, word] } }
  critic:
    description: judges
    goal: Judge.
    capabilities: [judging]
    procedure: Judge.
    output: a verdict
    frontmatter:
      oneOf:
        - { type: object, properties: { $status: { const: good } }, required: [$status] }
        - { type: object, properties: { $status: { const: bad }, why: { type: string } }, required: [$status, why] }
graph:
  $START: { _: { role: writer, prompt: "Write one word." } }
  writer: { done: { role: critic, prompt: "Judge {{{word}}}." } }
  critic: { good: { role: $END }, bad: { role: writer, prompt: "Write another one: {{{why}}}." } }
`

// answer is a writer's answer.
func answer(word string) string {
	return "---\n$status: done\nword: " + word + "\n---\n\nI wrote " + word + "."
}

// built caches the commands built by this process.
var built struct {
	sync.Mutex
	names []string
}

// build builds our commands, each once, and returns their directory.
func build(t *testing.T, names ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tmp", "agents", "bin"))
	require.NoError(t, err)
	for _, name := range names {
		if slices.Contains(built.names, name) {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "../../cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		built.names = append(built.names, name)
	}
	return dir
}

// world is a home, a working directory and a thread, with one agent.
type world struct {
	t      *testing.T
	dir    string // contains everything else
	bin    string
	env    []string
	agent  map[string]any // in the config
	thread string
}

// newWorld creates a home in which the command plays all roles, with additional variables.
func newWorld(t *testing.T, command string, args []string, environ map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), bin: build(t, "uwf", "uwf-box", command)}
	for _, name := range []string{"home", "work", "user"} {
		require.NoError(t, os.Mkdir(filepath.Join(w.dir, name), 0o700))
	}
	w.env = []string{
		"PATH=" + w.bin + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + filepath.Join(w.dir, "user"), "UWF_HOME=" + filepath.Join(w.dir, "home"), "TMPDIR=" + w.dir,
	}
	w.agent = agent(command, args, environ)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "work", "talk.yaml"), []byte(workflow), 0o600))
	return w
}

// patience bounds everything: starting one of these programs takes seconds of processor time, which may be
// scarce.
const patience = 5 * time.Minute

// agent returns an agent's config entry.
func agent(command string, args []string, environ map[string]string) map[string]any {
	return map[string]any{
		"command": command, "args": args, "env": environ,
		"startTimeout": patience.String(), "idleTimeout": patience.String(), "timeout": (2 * patience).String(),
	}
}

// begin starts a thread. Threads share a home, like a user's, because querying the version of a JavaScript
// program takes as long as a run.
func (w *world) begin(t *testing.T) *world {
	t.Helper()
	begun := *w
	begun.t = t
	begun.configure(nil)
	begun.thread = begun.begun()
	return &begun
}

// begun starts a thread and returns its ID.
func (w *world) begun() string {
	w.t.Helper()
	var started struct{ Thread string }
	w.json(&started, "thread", "start", "talk.yaml", "-p", "A task.")
	return started.Thread
}

// configure writes the config, with changed fields of the agent.
func (w *world) configure(fields map[string]any) {
	w.t.Helper()
	agent := maps.Clone(w.agent)
	maps.Copy(agent, fields)
	config, err := json.Marshal(map[string]any{"defaultAgent": "it", "agents": map[string]any{"it": agent}}) // JSON is valid YAML
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, "home", "config.yaml"), config, 0o600))
}

// command returns a command that runs uwf, and its stderr.
func (w *world) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(w.bin, "uwf"), args...)
	cmd.Dir, cmd.Env = filepath.Join(w.dir, "work"), w.env
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	return cmd, stderr
}

// json runs uwf and decodes its output.
func (w *world) json(into any, args ...string) {
	w.t.Helper()
	cmd, stderr := w.command(append([]string{"--format", "json"}, args...)...)
	out, err := cmd.Output()
	require.NoError(w.t, err, "uwf %s\n%s%s", strings.Join(args, " "), out, stderr)
	require.NoError(w.t, json.Unmarshal(out, into), "%s", out)
}

// step makes a step and returns its result; the error is uwf's.
func (w *world) step() (status, said string, err error) {
	cmd, stderr := w.command("--format", "json", "thread", "step", w.thread)
	out, err := cmd.Output()
	var result struct{ Status string }
	_ = json.Unmarshal(out, &result) // a failed step has no result
	return result.Status, stderr.String(), err
}

func (w *world) mustStep() string {
	w.t.Helper()
	status, said, err := w.step()
	require.NoError(w.t, err, said)
	return status
}

// of returns the same world with another thread.
func (w *world) of(thread string) *world {
	other := *w
	other.thread = thread
	return &other
}

// lastStep is the newest step of the thread.
type lastStep struct {
	Hash      string
	SessionID string
	Output    map[string]any
	Usage     map[string]any
}

func (w *world) last() lastStep {
	w.t.Helper()
	var list struct{ Steps []lastStep }
	w.json(&list, "thread", "steps", w.thread)
	return list.Steps[len(list.Steps)-1]
}

// shown returns a step as readable text, with its turns.
func (w *world) shown(hash string) string {
	w.t.Helper()
	cmd, stderr := w.command("thread", "step-details", hash)
	out, err := cmd.Output()
	require.NoError(w.t, err, stderr.String())
	return string(out)
}

// background starts a step and returns at once.
func (w *world) background() (wait func() error, stderr *bytes.Buffer) {
	cmd, stderr := w.command("thread", "step", w.thread)
	require.NoError(w.t, cmd.Start())
	return cmd.Wait, stderr
}

// agentPid returns the process ID of the running agent.
func (w *world) agentPid() int {
	w.t.Helper()
	var run struct{ Pid int }
	require.Eventually(w.t, func() bool {
		data, err := os.ReadFile(filepath.Join(w.dir, "home", "runs", w.thread, "run.json"))
		data = bytes.TrimSpace(data)
		return err == nil && json.Unmarshal(data[bytes.LastIndexByte(data, '\n')+1:], &run) == nil && run.Pid > 0
	}, patience, 10*time.Millisecond)
	return run.Pid
}
