package gc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/steptest"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// world is a home with its store, on the real disk without flushes.
type world struct {
	t     testing.TB
	home  string
	store *fsstore.Store
	index *fileheads.Heads
}

func newWorld(t testing.TB) *world {
	home := t.TempDir()
	return &world{t: t, home: home, store: openStore(t, home), index: fileheads.Open(home, durable.OS())}
}

func openStore(t testing.TB, home string) *fsstore.Store {
	s, err := fsstore.Open(context.Background(), filepath.Join(home, "cas"), fsstore.Options{Home: home})
	require.NoError(t, err)
	return s
}

func (w *world) batch() *cas.Batch { return cas.NewBatch(w.store, time.Now) }

// text puts a text node.
func (w *world) text(s string) cas.Hash {
	b := w.batch()
	h, err := b.Add(context.Background(), protocol.Text(s))
	require.NoError(w.t, err)
	require.NoError(w.t, b.Put(context.Background()))
	return h
}

// start starts a thread as the engine does.
func (w *world) start(id string) cas.Hash {
	ctx := context.Background()
	release, err := cas.LockShared(ctx, w.store)
	require.NoError(w.t, err)
	b := w.batch()
	schema, err := b.AddSchema(ctx, map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}, "of": map[string]any{"type": "string"}}})
	require.NoError(w.t, err)
	workflow, err := b.Add(ctx, protocol.Workflow{
		Name: "w", Description: "d",
		Roles: map[string]protocol.Role{"r": {Description: "d", Goal: "g", Procedure: "p", Output: "o", Capabilities: []string{}, Frontmatter: schema}},
		Graph: map[string]protocol.GraphNode{},
	})
	require.NoError(w.t, err)
	start, err := b.Add(ctx, protocol.Start{Workflow: workflow, Prompt: "prompt of " + id, Cwd: "/"})
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	require.NoError(w.t, w.index.Add(ctx, id, start, heads.Facts{}))
	require.NoError(w.t, release())
	return start
}

// step does what the engine and an agent do in one step: the agent puts turns as they happen, commits
// everything, and then the head moves.
func (w *world) step(id string, said protocol.Turn) (cas.Hash, error) {
	ctx := context.Background()
	head, err := w.index.Head(ctx, id)
	if err != nil {
		return "", err
	}
	run := filepath.Join(w.home, "runs", id)
	if err := os.MkdirAll(run, 0o755); err != nil {
		return "", err
	}
	began := time.Now()
	lock, err := w.prepare(ctx, run, head, began, "prompt of "+said.Content)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Unlock() }()
	agent := openStore(w.t, w.home)
	b := cas.NewBatch(agent, time.Now)
	t, err := thread.Open(ctx, agent, head)
	if err != nil {
		return "", err
	}
	workflow, err := t.Workflow(ctx)
	if err != nil {
		return "", err
	}
	turn, err := b.Add(ctx, said)
	if err != nil {
		return "", err
	}
	if err := b.Put(ctx); err != nil {
		return "", err
	}
	next, err := steptest.Append(ctx, b, t, steptest.Step{
		Role: "r", Type: workflow.Roles["r"].Frontmatter, Value: map[string]any{"n": rand.IntN(4)},
		Turns: []cas.Hash{turn}, Prompt: "prompt of " + said.Content,
	})
	if err != nil {
		return "", err
	}
	return next, w.index.Move(ctx, id, head, next)
}

func (w *world) prepare(ctx context.Context, run string, head cas.Hash, began time.Time, prompt string) (*durable.Held, error) {
	release, err := cas.LockShared(ctx, w.store)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	h := w.text(prompt)
	record, err := json.Marshal(map[string]any{"promptHash": h, "head": head, "startedAt": began.UnixMilli()})
	if err != nil {
		return nil, err
	}
	lock, err := durable.Lock(ctx, filepath.Join(run, "agent.lock"))
	if err != nil {
		return nil, err
	}
	return lock, os.WriteFile(filepath.Join(run, "run.json"), record, 0o644)
}

func (w *world) collect(o gc.Options) gc.Report {
	o.Homes = []string{w.home}
	if o.Now == nil {
		o.Now = time.Now
	}
	r, err := gc.Run(context.Background(), w.store, o)
	require.NoError(w.t, err)
	return r
}

func (w *world) has(h cas.Hash) bool {
	ok, err := w.store.Has(context.Background(), h)
	require.NoError(w.t, err)
	return ok
}

// whole reads everything that the threads reference.
func (w *world) whole() {
	ctx := context.Background()
	for h, err := range w.index.Heads(ctx) {
		require.NoError(w.t, err)
		for n, err := range graph.Walk(ctx, w.store, []cas.Hash{h.Hash}, graph.WalkOptions{FollowTypes: true}) {
			require.NoError(w.t, err, "thread %s, node %s", h.Thread, n.Hash)
		}
	}
}

// age seals the newest segment, as if the last put into it were long ago.
func (w *world) age(by time.Duration) { age(w.t, w.store, by) }

const firstThread = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// Nothing young is removed while the clock is set back by a year, nor when it is right again.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(firstThread)
	w.text("garbage")
	w.age(3 * time.Hour)
	require.Equal(t, 1, w.collect(gc.Options{Grace: time.Hour}).Freed)

	before := w.text("before")
	back := func() time.Time { return time.Now().AddDate(-1, 0, 0) }
	require.Zero(t, w.collect(gc.Options{Grace: time.Hour, Now: back}).Freed)
	require.True(t, w.has(before))

	w.age(2 * time.Hour)
	then := w.text("while it was set back")
	w.age(365 * 24 * time.Hour)
	for range 2 {
		w.collect(gc.Options{Grace: time.Hour})
		require.True(t, w.has(then))
	}
	w.collect(gc.Options{})
	require.False(t, w.has(then), "it isn't kept for ever")
}

// Only garbage is removed: not what threads need, nor young nodes, references of a run, or the schemas that a
// store starts with.
func TestWhatStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(firstThread)
	_, err := w.step(firstThread, turn(0))
	require.NoError(t, err)
	old, announced, kept := w.text("garbage"), w.text("announced"), w.text("kept")
	w.age(2 * time.Hour)
	young := w.text("young")
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "runs", firstThread, "result.json"), []byte(`{"stepHash":"`+string(kept)+`"}`), 0o644))
	stdout := filepath.Join(w.home, "runs", firstThread, "stdout")
	require.NoError(t, os.WriteFile(stdout, []byte(`{"uwf":"turn","hash":"`+strings.ToLower(string(announced))+"\"}\n"+
		`{"uwf":"writing","hash":"`+string(old)+"\"}\n"), 0o644))

	dry := w.collect(gc.Options{Grace: time.Hour, DryRun: true})
	require.Equal(t, 1, dry.Freed)
	require.True(t, w.has(old), "a dry run only counts")

	report := w.collect(gc.Options{Grace: time.Hour})
	require.Equal(t, 1, report.Freed)
	require.Equal(t, dry.FreedSize, report.FreedSize)
	require.False(t, w.has(old))
	require.True(t, w.has(young))
	require.True(t, w.has(announced))
	require.True(t, w.has(kept))

	report = w.collect(gc.Options{})
	require.Equal(t, 1, report.Freed)
	require.False(t, w.has(young))
	require.True(t, w.has(announced))
	for _, k := range protocol.Kinds() {
		require.True(t, w.has(w.store.Kinds().Hash(k)), k)
	}
	w.whole()
}

// References of ended threads, facts and the registry stay, with everything below.
func TestRootsOfTheIndex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	start := w.start(firstThread)
	head, err := w.step(firstThread, turn(0))
	require.NoError(t, err)
	require.NoError(t, w.index.Archive(ctx, heads.Ended{Thread: firstThread, Head: head, Status: protocol.StatusCompleted}))
	registered := w.text("stands for a workflow")
	require.NoError(t, w.index.Register(ctx, "w", registered))
	undone := w.text("a step that was undone")
	require.NoError(t, w.index.SetFacts(ctx, firstThread, heads.Facts{Undone: []protocol.Hash{undone}}))
	require.NoError(t, os.RemoveAll(filepath.Join(w.home, "runs")))
	require.Zero(t, w.collect(gc.Options{}).Freed)
	require.True(t, w.has(undone))
	require.True(t, w.has(start))
	require.True(t, w.has(registered))
}

// A node that is put again is young again.
func TestPutAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.text("again")
	w.age(2 * time.Hour)
	require.Equal(t, h, w.text("again"))
	require.Zero(t, w.collect(gc.Options{Grace: time.Hour}).Freed)
	require.True(t, w.has(h))
}

// While an agent runs, nothing is removed that it has put since its step started, nor anything its nodes
// reference.
func TestAgentAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := w.start(firstThread)
	run := filepath.Join(w.home, "runs", firstThread)
	require.NoError(t, os.MkdirAll(run, 0o755))
	before, again := w.text("before"), w.text("again")
	w.age(time.Hour)
	lock, err := w.prepare(context.Background(), run, start, time.Now(), "prompt")
	require.NoError(t, err)
	since := w.text("since")
	require.Equal(t, again, w.text("again"))
	require.Equal(t, 1, w.collect(gc.Options{}).Freed)
	require.False(t, w.has(before))
	require.True(t, w.has(since))
	require.True(t, w.has(again))
	require.NoError(t, os.Remove(filepath.Join(run, "run.json")))
	w.age(1000 * time.Hour)
	require.Zero(t, w.collect(gc.Options{}).Freed, "nobody knows since when it runs")
	require.NoError(t, lock.Unlock())
	require.Equal(t, 3, w.collect(gc.Options{}).Freed, "the agent is gone, and with the record its prompt")
}

// If the clock is set back while an agent works, its new nodes look older than its step.
func TestClockThatWentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := w.start(firstThread)
	run := filepath.Join(w.home, "runs", firstThread)
	require.NoError(t, os.MkdirAll(run, 0o755))
	lock, err := w.prepare(context.Background(), run, start, time.Now().Add(5*time.Hour), "prompt")
	require.NoError(t, err)
	since := w.text("since")
	w.age(time.Minute)
	require.Zero(t, w.collect(gc.Options{}).Freed)
	require.True(t, w.has(since))
	require.NoError(t, lock.Unlock())
	require.Equal(t, 1, w.collect(gc.Options{}).Freed)
}

// Below damage the needed nodes are unknown, so nothing is removed.
func TestDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	start := w.start(firstThread)
	garbage := w.text("garbage")
	castest.FindRecord(t, w.store.Dir(), start).Lose()
	options := gc.Options{Homes: []string{w.home}, Now: time.Now}
	_, err := gc.Run(ctx, w.store, options)
	var damage *gc.DamagedError
	require.ErrorAs(t, err, &damage)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.True(t, w.has(garbage))
	options.Damaged = true
	_, err = gc.Run(ctx, w.store, options)
	require.NoError(t, err)
	require.False(t, w.has(garbage))
}

// What can't be collected safely is rejected without changes.
func TestRefusals(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t)
	garbage := w.text("garbage")
	for name, homes := range map[string][]string{
		"no home": nil, "a home that is not there": {filepath.Join(w.home, "none")},
	} {
		_, err := gc.Run(ctx, w.store, gc.Options{Homes: homes, Now: time.Now})
		require.Error(t, err, name)
		require.True(t, w.has(garbage), name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "threads.yaml"), []byte("what: is this\n"), 0o644))
	_, err := gc.Run(ctx, w.store, gc.Options{Homes: []string{w.home}, Now: time.Now})
	require.ErrorContains(t, err, "threads.yaml:1")
	require.True(t, w.has(garbage))
}

// Threads that start and run during continuous collections without a grace period stay intact, although every
// turn and prompt they put was old garbage just before, which the collector is removing.
func TestThreadsRunMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(firstThread)
	const rounds, threads, steps = 4, 4, 3
	freed := 0
	for round := range rounds {
		for i := range 2 * threads * steps { // half of it stays garbage
			b := w.batch()
			said := turn(round*1000 + i)
			_, err := b.Add(t.Context(), said)
			require.NoError(t, err)
			require.NoError(t, b.Put(t.Context()))
			w.text("prompt of " + said.Content)
		}
		w.age(2 * time.Hour)
		stop := make(chan struct{})
		var collector, steppers sync.WaitGroup
		collector.Go(func() {
			for !closed(stop) {
				freed += w.collect(gc.Options{}).Freed
			}
		})
		errs := make(chan error, threads)
		for i := range threads {
			steppers.Go(func() {
				id := fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ69G%02d%02d", round, i)
				w.start(id)
				for n := range steps {
					if _, err := w.step(id, turn(round*1000+2*(i*steps+n))); err != nil {
						errs <- fmt.Errorf("thread %s, step %d: %w", id, n, err)
						return
					}
				}
			})
		}
		steppers.Wait()
		close(stop)
		collector.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		w.whole()
	}
	freed += w.collect(gc.Options{}).Freed
	w.whole()
	require.GreaterOrEqual(t, freed, rounds*threads*steps)
}

func turn(i int) protocol.Turn {
	return protocol.Turn{Role: protocol.TurnAssistant, Content: fmt.Sprintf("turn %d", i), AtMs: 1}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Packing keeps every node.
func TestPack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start, garbage := w.start(firstThread), w.text("garbage")
	require.NoError(t, gc.Pack(t.Context(), w.store, time.Now().Add(2*gc.DefaultGrace)))
	require.Contains(t, w.store.Where(start), ".pack")
	require.Contains(t, w.store.Where(garbage), ".pack")
	w.whole()
	require.Equal(t, 1, w.collect(gc.Options{}).Freed)
	require.False(t, w.has(garbage))
}

// unreadable is a store in which a node can't be read.
type unreadable struct {
	*fsstore.Store
	hash cas.Hash
}

func (s unreadable) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if h == s.hash {
		return cas.Node{}, &os.PathError{Op: "read", Path: s.Where(h), Err: os.ErrPermission}
	}
	return s.Store.Get(ctx, h)
}

// A tombstone that can't be read may be ours: without it, an import would bring back the content.
func TestAnUnreadableTombstoneStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.text("redacted")
	n, err := w.store.Get(t.Context(), h)
	require.NoError(t, err)
	require.NoError(t, w.store.Redact(t.Context(), t.Context().Err, cas.Tombstone{Hash: h, Type: n.Type, At: 1}))
	w.age(1000 * time.Hour)
	_, err = gc.Run(t.Context(), unreadable{w.store, h}, gc.Options{Homes: []string{w.home}, Now: time.Now})
	require.NoError(t, err)
	_, err = w.store.Get(t.Context(), h)
	_, redacted := cas.AsRedacted(err)
	require.True(t, redacted, "%v", err)
}
