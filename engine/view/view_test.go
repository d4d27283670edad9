package view_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
)

const twice = `name: twice
description: One role, until it is done.
roles:
  writer:
    description: Writes.
    goal: Write.
    capabilities: []
    procedure: Write.
    output: A text.
    frontmatter: {type: object, properties: {$status: {enum: [more, done]}}, required: [$status]}
graph:
  $START: {_: {role: writer, prompt: Write.}}
  writer: {more: {role: writer, prompt: Again.}, done: {role: $END, prompt: Done.}}
`

// world is an engine with a new thread.
type world struct {
	*engine.Engine
	t      *testing.T
	thread string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "twice.yaml"), []byte(twice), 0o600))
	e, err := engine.Open(t.Context(), env.Env{Dir: dir, Environ: []string{"UWF_HOME=" + t.TempDir()}, Now: time.Now, Rand: rand.Reader}, engine.Options{})
	require.NoError(t, err)
	h, err := catalog.Of(e).Find(t.Context(), "twice.yaml")
	require.NoError(t, err)
	id, err := e.Start(t.Context(), protocol.Start{Workflow: h, Prompt: "Write a text.", Cwd: dir}, engine.StartOptions{})
	require.NoError(t, err)
	e.Reader.Hints = func(why ...protocol.Reason) []string { return hints.Of("", why...) }
	return &world{Engine: e, t: t, thread: id}
}

// step makes a step and moves the head as another process would.
func (w *world) step(status string) protocol.Hash {
	w.t.Helper()
	ctx := w.t.Context()
	head, err := w.Reader.Heads.Head(ctx, w.thread)
	require.NoError(w.t, err)
	t, err := thread.Open(ctx, w.Reader.Store, head)
	require.NoError(w.t, err)
	wf, err := t.Workflow(ctx)
	require.NoError(w.t, err)
	b := cas.NewBatch(w.Reader.Store, w.Reader.Env.Now)
	output, err := b.AddValue(ctx, wf.Roles["writer"].Frontmatter, map[string]any{"$status": status})
	require.NoError(w.t, err)
	turn, err := b.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: "It is " + status + "."})
	require.NoError(w.t, err)
	detail, err := b.Add(ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []protocol.Hash{turn}})
	require.NoError(w.t, err)
	s := protocol.Step{
		Start: t.StartHash, Index: t.Len(), Visits: map[string]int{"writer": t.Len() + 1}, Role: "writer", Output: output, Detail: detail,
		Agent: "uwf-fake", Cwd: w.Reader.Env.Dir, StartedAtMs: 1000, CompletedAtMs: 3000, SessionID: "s", ExtractedBy: protocol.ByValue,
	}
	if t.Len() > 0 {
		s.Prev = &head
	}
	h, err := b.Add(ctx, s)
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	require.NoError(w.t, w.Reader.Heads.Move(ctx, w.thread, head, h))
	return h
}

// Another program can show a thread without our texts.
func TestValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.step("more"), w.step("more")

	show, err := view.Thread(t.Context(), w.Engine, w.thread, true)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, show.Status)
	require.Equal(t, "uwf thread resume "+w.thread, string(show.Hint))
	require.Equal(t, 2, show.Totals.Steps)
	require.Len(t, show.Steps, 3)
	require.Equal(t, "Write a text.", show.Steps[0].(protocol.StartEntry).Prompt)
	require.Equal(t, second, show.Steps[2].(protocol.StepEntry).Hash)

	trace, err := view.TraceOf(t.Context(), w.Engine, w.thread)
	require.NoError(t, err)
	require.Equal(t, []string{"$START", "writer", "writer"}, trace.Path())
	require.Equal(t, int64(4000), trace.Roles()[0].DurationMs)

	chain, err := thread.Open(t.Context(), w.Reader.Store, second)
	require.NoError(t, err)
	var steps []protocol.Hash
	for s, err := range view.Turns(t.Context(), w.Reader.Store, chain, "writer") {
		require.NoError(t, err)
		require.Len(t, s.Turns, 1)
		steps = append(steps, s.Step)
	}
	require.Equal(t, []protocol.Hash{first, second}, steps)

	var threads []string
	listed := view.Listed(t.Context(), w.Reader.Heads, view.Filter{}, func(err error) { require.NoError(t, err) })
	for item := range view.Items(t.Context(), w.Engine, listed, view.Filter{}) {
		threads = append(threads, item.Thread)
	}
	require.Equal(t, []string{w.thread}, threads)
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.step("more")
	d, err := view.Diagnose(t.Context(), w.Engine, w.thread)
	require.NoError(t, err)
	require.Equal(t, 1, d.Totals.Steps)
	prosetest.Text(t, d.Findings[0].Message, "there is no agent")
	require.Equal(t, "error", d.Findings[0].Level)
}

type inner = heads.Heads

// afterTheFirstLook is the call at which a watcher reads the head after its first look.
const afterTheFirstLook = 3

// during calls do before the n-th read of the head, from 1.
type during struct {
	inner
	n  int
	do func(n int)
}

func (d *during) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	d.n++
	d.do(d.n)
	return d.inner.Head(ctx, thread)
}

// Watch reports a step made by another process. A watcher can stop while the thread runs.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, view.Follow(t.Context(), w.Engine, w.thread, func(engine.Event) {
		t.Error("nothing happens, and nothing works on the thread")
	}))
	release, err := w.Exclusive(t.Context(), w.thread)
	require.NoError(t, err)
	defer release()
	watched := *w.Engine
	watched.Reader.Heads = &during{inner: w.Reader.Heads, do: func(n int) {
		if n == afterTheFirstLook {
			w.step("more")
		}
	}}
	var kinds []engine.EventKind
	ctx, enough := context.WithCancel(t.Context())
	err = view.Follow(ctx, &watched, w.thread, func(ev engine.Event) {
		require.Equal(t, "writer", ev.Step.Role)
		if kinds = append(kinds, ev.Kind); ev.Kind == engine.StepEnded {
			require.Equal(t, protocol.StatusIdle, ev.Output.Status)
			enough()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []engine.EventKind{engine.StepStarted, engine.StepEnded}, kinds)
}

// The last step is reported when its thread has ended, not while the end is being recorded: its view of the
// thread is then true.
func TestWatchTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release, err := w.Exclusive(t.Context(), w.thread)
	require.NoError(t, err)
	defer release()
	watched := *w.Engine
	var head protocol.Hash
	watched.Reader.Heads = &during{inner: w.Reader.Heads, do: func(n int) {
		switch n {
		case afterTheFirstLook:
			head = w.step("done")
		case 4 * afterTheFirstLook:
			ended := heads.Ended{Thread: w.thread, Head: head, Status: protocol.StatusCompleted, CompletedAt: w.Reader.Env.Now().UnixMilli()}
			show, err := w.Reader.Show(t.Context(), w.thread)
			require.NoError(t, err)
			ended.Workflow = show.Workflow
			require.NoError(t, w.Reader.Heads.Archive(t.Context(), ended))
		}
	}}
	ctx, enough := context.WithCancel(t.Context())
	err = view.Follow(ctx, &watched, w.thread, func(ev engine.Event) {
		if ev.Kind == engine.StepEnded {
			require.Equal(t, protocol.StatusCompleted, ev.Output.Status)
			enough()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
}

// A step shared by forks counts once. Unreported values are unknown, not zero.
func TestStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.step("more")
	_, err := w.Fork(t.Context(), first, engine.ForkOptions{})
	require.NoError(t, err)
	w.step("more")
	s, err := view.Stats(t.Context(), w.Engine, nil, time.Time{}, []string{"role", "model"})
	require.NoError(t, err)
	require.Empty(t, s.Unread)
	require.Len(t, s.Rows, 1)
	require.Equal(t, map[string]string{"role": "writer", "model": ""}, s.Rows[0].Of)
	require.Equal(t, 2, s.Totals.Steps)
	require.Nil(t, s.Totals.Usage)
	require.Equal(t, 2, s.Totals.StepsWithoutCost)
	var known view.Summaries
	for _, by := range [][]string{{"role", "model"}, {"role", "model"}, {"day", "agent", "workflow"}, {"day", "agent", "workflow"}} {
		fresh, err := view.Stats(t.Context(), w.Engine, nil, time.Time{}, by)
		require.NoError(t, err)
		again, err := view.Stats(t.Context(), w.Engine, &known, time.Time{}, by)
		require.NoError(t, err)
		require.Equal(t, fresh, again)
		w.step("more") // the next sums have another step
	}
	later, err := view.Stats(t.Context(), w.Engine, nil, time.Now(), []string{"day"})
	require.NoError(t, err)
	require.Empty(t, later.Rows)
}

// Reading the inbox of many threads costs as much as listing them.
func TestInboxReadsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.step("more")
	config, loads := w.Reader.Config, 0
	w.Reader.Config = func(ctx context.Context) (protocol.Config, error) {
		loads++
		c, err := config(ctx)
		c.Limits = &protocol.LimitsConfig{MaxSteps: 1}
		return c, err
	}
	first := w.thread
	start, err := thread.Open(t.Context(), w.Reader.Store, w.step("more"))
	require.NoError(t, err)
	w.thread, err = w.Start(t.Context(), start.Start, engine.StartOptions{})
	require.NoError(t, err)
	w.step("more")
	w.Reader.Heads, loads = &during{inner: w.Reader.Heads, do: func(int) { t.Error("a head was looked up again") }}, 0
	inbox := view.Inbox(t.Context(), w.Engine, func(err error) { t.Error(err) })
	require.Len(t, inbox, 2)
	require.Equal(t, 1, loads)
	require.ElementsMatch(t, []string{first, w.thread}, []string{inbox[0].Thread, inbox[1].Thread})
	for _, item := range inbox {
		require.Equal(t, int64(3000), *item.Since)
		require.Equal(t, "uwf thread resume "+item.Thread, item.Command)
	}
}
