package view_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

// chains stores chains of steps.
type chains struct {
	t      *testing.T
	store  cas.Store
	batch  *cas.Batch
	schema cas.Hash
	clock  int64
}

func newChains(t *testing.T) *chains {
	t.Helper()
	w := &chains{t: t, store: castest.NewStore(t, cas.XXH3)}
	w.batch = cas.NewBatch(w.store, func() time.Time { return time.UnixMilli(1) })
	var err error
	w.schema, err = w.batch.AddSchema(context.Background(), map[string]any{"type": "object"})
	require.NoError(t, err)
	return w
}

func (w *chains) start(task string) cas.Hash {
	return w.add(protocol.Start{Workflow: w.schema, Prompt: task, Cwd: "/"})
}

func (w *chains) add(p protocol.Payload) cas.Hash {
	w.t.Helper()
	h, err := w.batch.Add(context.Background(), p)
	require.NoError(w.t, err)
	require.NoError(w.t, w.batch.Commit(context.Background()))
	return h
}

// step adds a step. Its time makes it unique.
func (w *chains) step(head cas.Hash, role, answer string, output map[string]any) cas.Hash {
	w.t.Helper()
	ctx := context.Background()
	th, err := thread.Open(ctx, w.store, head)
	require.NoError(w.t, err)
	turn := w.add(protocol.Turn{Role: protocol.TurnAssistant, Content: answer})
	detail := w.add(protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []cas.Hash{turn}})
	out, err := w.batch.AddValue(ctx, w.schema, output)
	require.NoError(w.t, err)
	w.clock++
	h, err := th.Append(ctx, w.batch, protocol.Step{
		Role: role, Agent: "uwf-x", EdgePrompt: "p", Cwd: "/", SessionID: "s", Output: out, Detail: detail,
		ExtractedBy: protocol.ByValue, CompletedAtMs: w.clock,
	})
	require.NoError(w.t, err)
	require.NoError(w.t, w.batch.Commit(ctx))
	return h
}

func (w *chains) compare(a, b cas.Hash) view.Diff {
	w.t.Helper()
	d, err := view.Compare(context.Background(), w.store, a, b)
	require.NoError(w.t, err)
	return d
}

func TestWhereThreadsPart(t *testing.T) {
	t.Parallel()
	w := newChains(t)
	yes, no := map[string]any{"$status": "yes", "n": []any{1, 2}}, map[string]any{"$status": "no", "n": []any{1, 3}}
	one := w.step(w.start("task"), "a", "I did", yes)
	two := w.step(one, "b", "fine", yes)

	d := w.compare(two, two)
	require.True(t, d.Equal)
	require.Equal(t, 2, d.Shared)
	require.Equal(t, "  2 steps in common\n", view.DiffText(d))

	again := w.step(w.step(w.start("task"), "a", "I did", yes), "b", "fine", yes)
	d = w.compare(two, again)
	require.True(t, d.Equal, "the same in substance, though it took another time")
	require.Equal(t, 0, d.Shared)
	require.Equal(t, 2, d.Same)

	other := w.step(w.step(one, "b", "not\nfine", no), "a", "more", yes)
	d = w.compare(two, other)
	require.False(t, d.Equal)
	require.Equal(t, 1, d.Shared)
	require.Equal(t, 2, *d.At)
	require.Equal(t, []view.Change{
		{Field: "output.$status", Old: "yes", New: "no"},
		{Field: "output.n[1]", Old: 2.0, New: 3.0},
		{Field: "answer", Old: "fine", New: "not\nfine"},
	}, normal(d.Changes)[:3])
	require.Len(t, d.Rest, 1)
	require.Nil(t, d.Rest[0].Old)
	require.Equal(t, "a", d.Rest[0].New.Role)
	text := view.DiffText(d)
	require.Contains(t, text, "~ step 2\n  ~ output.$status\n      - yes\n      + no\n")
	require.Contains(t, text, "  step 3: (none) | a yes\n")
}

func TestEndsAndStarts(t *testing.T) {
	t.Parallel()
	w := newChains(t)
	start := w.start("task")
	one := w.step(start, "a", "x", map[string]any{})
	d := w.compare(start, one)
	require.Equal(t, 1, *d.At)
	require.Equal(t, []view.Change{{Field: "step", New: "a"}}, d.Changes)
	require.Contains(t, view.DiffText(d), "+ step ")
	require.Contains(t, view.DiffText(d), ": a\n")
	d = w.compare(one, start)
	require.Equal(t, []view.Change{{Field: "step", Old: "a"}}, d.Changes)

	d = w.compare(one, w.step(w.start("another"), "a", "x", map[string]any{}))
	require.Equal(t, 0, *d.At)
	require.Equal(t, "task", d.Changes[0].Field)
	require.Len(t, d.Rest, 1)
	require.Contains(t, view.DiffText(d), "~ the start\n  ~ task\n      - task\n      + another\n  step 1: a in both\n")

	_, err := view.Compare(context.Background(), w.store, one, "0123456789ABC")
	require.ErrorIs(t, err, cas.ErrNotFound)
}

// normal makes numbers comparable, whatever their stored type.
func normal(changes []view.Change) []view.Change {
	for i, c := range changes {
		if n, ok := c.Old.(int64); ok {
			changes[i].Old = float64(n)
		}
		if n, ok := c.New.(int64); ok {
			changes[i].New = float64(n)
		}
	}
	return changes
}
