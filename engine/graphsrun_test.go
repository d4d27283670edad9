package engine_test

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	casthread "github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/runfiles"
)

var (
	graphSeed  = flag.Uint64("graph.seed", 1, "of the first graph; 0: another one each time")
	graphCount = flag.Int("graph.count", 2, "how many graphs are run")
	graphSteps = flag.Int("graph.steps", 50, "how many steps their threads make at most")
)

// Random graphs are run by drivers that fail, two at once, by hand and in any order. They reach the predicted
// state: the same children in the same order, the same joins and the same end. No agent is run again for
// finished work.
func TestGraphs(t *testing.T) {
	t.Parallel()
	seed := *graphSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	for i := range uint64(*graphCount) {
		t.Run("", func(t *testing.T) {
			t.Log("-graph.seed", seed+i, "-graph.count 1")
			runGraph(t, seed+i)
		})
	}
}

func runGraph(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 18))
	var m *maker
	var want thread
	for tooFew := 8; ; { // try until the graph has a useful size
		m = &maker{Rand: random}
		deep := random.IntN(11)
		g := m.graph(deep, false)
		predicted := model{t: t}
		want = predicted.expected(g, "go")
		if predicted.steps >= tooFew && predicted.steps <= *graphSteps && want.Status == protocol.StatusCompleted {
			t.Log(len(m.graphs), "workflows,", predicted.steps, "steps")
			break
		}
	}
	w := newGraphWorld(t, random)
	m.write(t, w.dir)
	e := w.engine(durable.OS())
	ctx := t.Context()
	started, err := catalog.Of(e).Start(ctx, e, filepath.Join(w.dir, "g0.yaml"), protocol.Start{Prompt: "go", Cwd: w.dir}, engine.StartOptions{})
	require.NoError(t, err)
	w.root = started.Thread
	for range random.IntN(10) {
		w.disturbed(ctx)
		w.persons(ctx, random.IntN(3))
	}
	for {
		out, err := e.Reader.Show(ctx, w.root)
		require.NoError(t, err)
		if out.Done {
			break
		}
		outs, err := e.Do(ctx, w.root, engine.Work{StepOptions: engine.StepOptions{Parallel: 1 + random.IntN(8)}})
		require.True(t, w.persons(ctx, 1000) > 0 || len(outs) > 0, "it does not go on: %v: %v", out.Status, err)
	}
	require.Equal(t, text(t, want), text(t, w.read(ctx)))
}

func text(t *testing.T, th thread) string {
	t.Helper()
	data, err := json.Marshal(th)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(data, &v))
	data, err = json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(data)
}

// graphWorld is a home in which a graph is run.
type graphWorld struct {
	t         *testing.T
	random    *rand.Rand
	dir, root string
	store     *fsstore.Store

	mu       sync.Mutex
	finished map[string]bool // by the key of the visit
	dying    map[string]bool // threads whose agents died
}

func newGraphWorld(t *testing.T, random *rand.Rand) *graphWorld {
	w := &graphWorld{t: t, random: random, dir: t.TempDir(), finished: map[string]bool{}, dying: map[string]bool{}}
	var err error
	w.store, err = fsstore.Open(t.Context(), filepath.Join(w.dir, "home", "cas"), fsstore.Options{})
	require.NoError(t, err)
	return w
}

func (w *graphWorld) engine(disk durable.FS) *engine.Engine {
	dirs := home.Dirs{Home: filepath.Join(w.dir, "home"), Store: filepath.Join(w.dir, "home", "cas")}
	store, err := fsstore.Open(context.Background(), dirs.Store, fsstore.Options{FS: disk})
	require.NoError(w.t, err)
	config := protocol.Config{DefaultAgent: "played", Agents: map[string]protocol.Agent{"played": {Command: "played"}}}
	return &engine.Engine{Run: w.play, Reader: status.Reader{
		Env:  env.Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}, Dir: w.dir, Now: time.Now, Rand: crand.Reader},
		Dirs: dirs, FS: disk, Store: store, Heads: fileheads.Open(dirs.Home, disk),
		Config: func(context.Context) (protocol.Config, error) { return config, nil },
	}}
}

// play plays all agents and commands.
func (w *graphWorld) play(ctx context.Context, inv agentproc.Invocation) (ran agentproc.Outcome, err error) {
	for range rand.IntN(50) {
		runtime.Gosched() // lets children overtake each other
	}
	if ctx.Err() != nil {
		return ran, context.Cause(ctx)
	}
	env := map[string]string{}
	for _, kv := range inv.Env {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	if inv.Plain {
		a, _ := answerOf(inv.Args[0], inv.Args[1])
		return ran, w.prints(inv, runfiles.OutputFile, a)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished[env[protocol.EnvVisitKey]] {
		w.t.Errorf("what role %s of thread %s has finished is asked for again", env[protocol.EnvRole], env[protocol.EnvThread])
	}
	step, err := w.answer(env[protocol.EnvRole], protocol.Hash(env[protocol.EnvHead]), protocol.Hash(env[protocol.EnvPrompt]))
	if err == nil && step == "" {
		w.dying[env[protocol.EnvThread]] = true
		ran.ExitCode = 1
		err = &agentproc.ExitError{Outcome: ran, Command: inv.Command}
	}
	if err != nil {
		return ran, err
	}
	ran.Result = protocol.Result{StepHash: step, Durable: true}
	w.finished[env[protocol.EnvVisitKey]] = true
	return ran, w.prints(inv, runfiles.StdoutFile, ran.Result)
}

func (w *graphWorld) prints(inv agentproc.Invocation, file string, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(inv.RunDir, file), append(line, '\n'), 0o600)
}

// answer makes an agent's step; it returns "" if the agent dies.
func (w *graphWorld) answer(role string, head, prompt protocol.Hash) (protocol.Hash, error) {
	ctx := w.t.Context()
	text, err := cas.Read[protocol.Text](ctx, w.store, prompt)
	if err != nil {
		return "", err
	}
	a, dies := answerOf(role, promptquote.Plain(string(text)))
	if dies {
		return "", nil
	}
	t, err := casthread.Open(ctx, w.store, head)
	if err != nil {
		return "", err
	}
	flow, err := t.Workflow(ctx)
	if err != nil {
		return "", err
	}
	b := cas.NewBatch(w.store, time.Now)
	n := protocol.Step{
		Role: role, Agent: "played", EdgePrompt: string(text), Cwd: w.dir, Prompt: &prompt, ExtractedBy: protocol.ByValue,
		StartedAtMs: time.Now().UnixMilli(), CompletedAtMs: time.Now().UnixMilli(), Usage: &protocol.Usage{Turns: 1},
	}
	if n.Output, err = b.AddValue(ctx, flow.Roles[role].Frontmatter, plain(w.t, a)); err != nil {
		return "", err
	}
	if n.Detail, err = b.Add(ctx, protocol.Detail{Capture: protocol.CaptureTurns, Turns: []protocol.Hash{}}); err != nil {
		return "", err
	}
	step, err := t.Append(ctx, b, n)
	if err != nil {
		return "", err
	}
	return step, b.Commit(ctx)
}

// plain returns an answer as decoded JSON.
func plain(t *testing.T, a answer) any {
	t.Helper()
	data, err := json.Marshal(a)
	require.NoError(t, err)
	v, err := exactjson.Parse(data)
	require.NoError(t, err)
	return v
}

// disturbed works on the graph in a random way that may fail early.
func (w *graphWorld) disturbed(ctx context.Context) {
	e := w.engine(durable.OS())
	work := engine.Work{StepOptions: engine.StepOptions{Parallel: 1 + w.random.IntN(8)}}
	switch w.random.IntN(5) {
	case 0: // as if the driver were killed
		left := &atomic.Int64{}
		left.Store(int64(1 + w.random.IntN(200)))
		_, _ = w.engine(brokenFS{durable.OS(), left}).Do(ctx, w.root, work)
	case 1:
		ctx, stop := context.WithCancelCause(ctx)
		agents := int64(w.random.IntN(10))
		e.Run = func(ctx context.Context, inv agentproc.Invocation) (agentproc.Outcome, error) {
			if atomic.AddInt64(&agents, -1) < 0 {
				stop(errors.New("stopped"))
			}
			return w.play(ctx, inv)
		}
		_, _ = e.Do(ctx, w.root, work)
		stop(nil)
	case 2:
		var drivers sync.WaitGroup
		for range 2 {
			drivers.Go(func() { _, _ = w.engine(durable.OS()).Do(ctx, w.root, work) })
		}
		drivers.Wait()
	case 3: // with a scheduler
		for range w.random.IntN(20) {
			_, _ = e.Step(ctx, w.anyone(ctx), engine.StepOptions{})
		}
	case 4:
		_, _ = e.Do(ctx, w.anyone(ctx), work)
	}
}

// active returns the threads of the family that haven't ended.
func (w *graphWorld) active(ctx context.Context) (ids []string) {
	for h, err := range w.engine(durable.OS()).Reader.Heads.Heads(ctx) {
		require.NoError(w.t, err)
		ids = append(ids, h.Thread)
	}
	return ids
}

func (w *graphWorld) anyone(ctx context.Context) string {
	ids := append(w.active(ctx), w.root)
	return ids[w.random.IntN(len(ids))]
}

// persons plays the persons for at most that many threads: it answers questions and kills threads whose
// agents always die. It returns the number of threads.
func (w *graphWorld) persons(ctx context.Context, most int) (n int) {
	e := w.engine(durable.OS())
	ids := w.active(ctx)
	w.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids[:min(most, len(ids))] {
		w.mu.Lock()
		dying := w.dying[id]
		w.mu.Unlock()
		if dying {
			require.NoError(w.t, e.Kill(ctx, id))
			n++
			continue
		}
		out, err := e.Reader.Show(ctx, id)
		require.NoError(w.t, err)
		if out.Question == nil {
			continue
		}
		a, _ := answerOf(out.Question.Role, out.Question.Text)
		_, err = e.Do(ctx, id, engine.Work{Do: engine.DoAnswer, Steps: 1, Answer: &engine.Answer{Value: plain(w.t, a), By: "tess"}})
		require.NoError(w.t, err)
		n++
	}
	return n
}

// read returns the end state of the graph.
func (w *graphWorld) read(ctx context.Context) thread {
	all, err := heads.ThreadStates(ctx, w.engine(durable.OS()).Reader.Heads)
	require.NoError(w.t, err)
	at := all[w.root]
	require.NotNil(w.t, at.End)
	return w.readFrom(ctx, "", at.End.Status, at.Head)
}

func (w *graphWorld) readFrom(ctx context.Context, key string, status protocol.Status, head protocol.Hash) thread {
	run := thread{Key: key, Status: status}
	t, err := casthread.Open(ctx, w.store, head)
	require.NoError(w.t, err)
	for s, err := range t.Steps(ctx) {
		require.NoError(w.t, err)
		out, err := t.Output(ctx, s)
		require.NoError(w.t, err)
		step := made{Role: s.Role, Output: out.Value}
		for _, c := range s.Children {
			step.Children = append(step.Children, w.readFrom(ctx, c.Key, c.Status, c.Head))
		}
		run.Steps = append(run.Steps, step)
	}
	slices.Reverse(run.Steps)
	return run
}

// brokenFS is a disk that fails after a number of changes.
type brokenFS struct {
	durable.FS
	left *atomic.Int64
}

func (f brokenFS) broken(path string) error {
	if f.left.Add(-1) < 0 {
		return &fs.PathError{Op: "write", Path: path, Err: syscall.EIO}
	}
	return nil
}

// WriteTemp implements [durable.FS].
func (f brokenFS) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (string, error) {
	if err := f.broken(path); err != nil {
		return "", err
	}
	return f.FS.WriteTemp(path, data, perm, flush)
}

// Rename implements [durable.FS].
func (f brokenFS) Rename(from, to string) error {
	if err := f.broken(to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// Append implements [durable.FS].
func (f brokenFS) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	if err := f.broken(path); err != nil {
		return err
	}
	return f.FS.Append(path, data, perm, flush)
}

// Extend implements [durable.FS].
func (f brokenFS) Extend(path string, data []byte, most int64) error {
	if err := f.broken(path); err != nil {
		return err
	}
	return f.FS.Extend(path, data, most)
}

// Remove implements [durable.FS].
func (f brokenFS) Remove(path string) error {
	if err := f.broken(path); err != nil {
		return err
	}
	return f.FS.Remove(path)
}
