//go:build unix

package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/internal/background"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// TestMain lets the test binary also act as an agent, and as an engine that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "fake-agent":
			os.Exit(fakeAgent(os.Args[2:]))
		case "fake-engine":
			os.Exit(fakeEngine(os.Args[2:]))
		}
	}
	if call, ok := background.CallOf(os.Args[1:]); ok {
		os.Exit(fakeWorker(call))
	}
	tmpfstest.Main(prosetest.Of(m))
}

// noRaceSleep keeps test processes built with -race from sleeping a second before they exit.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

// world is a home directory with a workflow and an engine.
type world struct {
	*Engine
	t        *testing.T
	dir      string // the agents' working directory
	workflow protocol.Hash
	config   protocol.Config
}

// newWorld returns a new world; agent is the script of the default agent, see fakeAgent.
func newWorld(t *testing.T, agent string) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{t: t, dir: filepath.Join(base, "work"), config: fakeConfig(agent)}
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	w.Engine = openEngine(t, filepath.Join(base, "home"), durable.OS(), func() protocol.Config { return w.config })
	w.workflow = w.put(testWorkflow(nil))
	return w
}

// openEngine opens the engine of a home directory. Nothing is flushed, as tests don't cut the power.
func openEngine(t require.TestingT, dir string, disk durable.FS, config func() protocol.Config) *Engine {
	dirs := home.Dirs{Home: dir, Store: filepath.Join(dir, "cas")}
	store, err := fsstore.Open(context.Background(), dirs.Store, fsstore.Options{FS: disk})
	require.NoError(t, err)
	return &Engine{
		Reader: status.Reader{
			Env: env.Env{
				Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, noRaceSleep},
				Dir:     dir, Now: time.Now, Rand: rand.Reader,
			},
			Dirs: dirs, FS: disk, Store: store, Heads: fileheads.Open(dirs.Home, disk),
			Config: func(context.Context) (protocol.Config, error) { return config(), nil },
			Hints:  func(why ...protocol.Reason) []string { return hints.Of("", why...) },
		},
		Grace: 2 * time.Second,
	}
}

func fakeConfig(agent string) protocol.Config {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return protocol.Config{
		DefaultAgent: "fake",
		Agents:       map[string]protocol.Agent{"fake": {Command: exe, Args: []string{"fake-agent", agent}}},
	}
}

// testWorkflow is planner → worker → end, with edges that suspend, loop and get stuck.
func testWorkflow(limits *protocol.Limits) (protocol.Workflow, map[string]any) {
	role := protocol.Role{Description: "a role", Goal: "g", Capabilities: []string{}, Procedure: "p", Output: "o"}
	w := protocol.Workflow{
		Name: "test", Description: "for tests", Limits: limits,
		Roles: map[string]protocol.Role{"planner": role, "worker": role},
		Graph: map[string]protocol.GraphNode{
			"$START": {Edges: map[string]protocol.Edge{"_": {Role: "planner", Prompt: "Plan: {{{$prompt}}}"}}},
			"planner": {Edges: map[string]protocol.Edge{
				"ready":   {Role: "worker", Prompt: "Do {{{plan}}}"},
				"again":   {Role: "planner", Prompt: "Once more."},
				"unclear": {Role: "$SUSPEND", Prompt: "What is {{{plan}}}?"},
				"nowhere": {Role: "worker", Prompt: "Go.", Location: "/no/such/{{{plan}}}"},
				"beside":  {Role: "worker", Prompt: "Go.", Location: "sub"},
				"outside": {Role: "worker", Prompt: "Go.", Location: "{{{$prompt}}}"},
			}},
			"worker": {Edges: map[string]protocol.Edge{
				"done":  {Role: "$END", Prompt: "Done."},
				"retry": {Role: "planner", Prompt: "Plan again."},
			}},
		},
	}
	schema := map[string]any{
		"type": "object", "required": []any{"$status"}, "additionalProperties": false,
		"properties": map[string]any{
			"$status": map[string]any{"type": "string"}, "plan": map[string]any{"type": "string"},
			"mail": map[string]any{"format": "email"}, // only the schema library rejects it
		},
	}
	return w, schema
}

func (w *world) put(wf protocol.Workflow, schema map[string]any) protocol.Hash {
	w.t.Helper()
	ctx := context.Background()
	b := w.Reader.Batch()
	for name, role := range wf.Roles {
		schema["title"] = wf.Name + "." + name
		h, err := b.AddSchema(ctx, schema)
		require.NoError(w.t, err)
		role.Frontmatter = h
		wf.Roles[name] = role
	}
	h, err := b.Add(ctx, wf)
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	return h
}

func (w *world) start() string {
	w.t.Helper()
	id, err := w.Start(context.Background(), protocol.Start{Workflow: w.workflow, Prompt: "the task", Cwd: w.dir}, StartOptions{})
	require.NoError(w.t, err)
	return id
}

func (w *world) mustStep(id string, o StepOptions) protocol.StepOutput {
	w.t.Helper()
	out, err := w.Step(context.Background(), id, o)
	require.NoError(w.t, err)
	return out
}

func (w *world) show(id string) protocol.StepOutput {
	w.t.Helper()
	out, err := w.Reader.Show(context.Background(), id)
	require.NoError(w.t, err)
	return out
}

// head returns the thread's head, active or ended.
func (w *world) head(id string) protocol.Hash {
	w.t.Helper()
	h, err := w.Reader.Head(context.Background(), id)
	require.NoError(w.t, err)
	return h
}

func (w *world) readStep(h protocol.Hash) protocol.Step {
	w.t.Helper()
	s, err := cas.Read[protocol.Step](context.Background(), w.Reader.Store, h)
	require.NoError(w.t, err)
	return s
}

// plays sets the script of the default agent.
func (w *world) plays(agent string) { w.config = fakeConfig(agent) }

// runs returns a line for each agent that was run.
func (w *world) runs() []string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.Reader.Dirs.Home, agentLog))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(w.t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// open releases an agent that waits at a gate.
func (w *world) open(gate string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.Reader.Dirs.Home, gate), nil, 0o600))
}

// eventually waits for a condition that another process changes.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	require.Eventually(w.t, condition, time.Minute, 5*time.Millisecond, what)
}

// requireCode checks an error's code, and that its text has the given parts.
func requireCode(t *testing.T, err error, code protocol.Code, parts ...string) *protocol.Error {
	t.Helper()
	var e *protocol.Error
	require.ErrorAs(t, err, &e)
	for _, part := range parts {
		require.Contains(t, e.Message, part)
	}
	require.Equal(t, code, e.Code, "%v", err)
	prosetest.Text(t, e)
	return e
}

// recorder records the events of steps.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) add(ev Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := ""
	switch ev.Kind {
	case StepStarted:
		text = fmt.Sprintf("start %d %s by %s adopted=%v", ev.Step.Number, ev.Step.Role, ev.Step.Agent, ev.Step.Adopted)
	case Turn:
		text = "turn " + ev.Turn.Content
	case Writing:
		text = "writing " + ev.Turn.Content
	case StepEnded:
		text = fmt.Sprintf("end %s %v", ev.Output.Status, ev.Err)
	case Children:
		text = fmt.Sprintf("children %v", ev.Children)
	default:
		return
	}
	r.events = append(r.events, text)
}

func (w *world) Resume(ctx context.Context, id, words string, o StepOptions) (protocol.StepOutput, error) {
	return w.once(ctx, id, Work{Do: DoResume, Prompt: words, StepOptions: o})
}

func (w *world) Poke(ctx context.Context, id, words string, o StepOptions) (protocol.StepOutput, error) {
	return w.once(ctx, id, Work{Do: DoPoke, Prompt: words, StepOptions: o})
}

func (w *world) Undo(ctx context.Context, id string) (protocol.StepOutput, error) {
	return w.once(ctx, id, Work{Do: DoUndo})
}

func (w *world) Redo(ctx context.Context, id string) (protocol.StepOutput, error) {
	return w.once(ctx, id, Work{Do: DoRedo})
}

// onWarning sets the function for warnings, including the reader's.
func (w *world) onWarning(warn func(string)) {
	w.Reader.Warn = warn
	w.Events = func(ev Event) {
		if ev.Kind == Warning {
			warn(ev.Text)
		}
	}
}

// lockFile returns the path of a thread's lock file.
func (w *world) lockFile(id string) string { return filepath.Join(w.Reader.Dirs.Locks(), id+".lock") }

// listed returns the state of a thread in a listing.
func listed(o *status.Overview, l status.Listed) (item status.ThreadInfo) {
	for item = range o.Threads(context.Background(), []status.Listed{l}) {
	}
	return item
}
