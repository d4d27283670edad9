package status_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
)

// panelOf returns a workflow whose second role has two concurrent children with the role "rev".
func panelOf() protocol.Workflow {
	wf := lineOf("plan", "panel", "last")
	rev := protocol.ChildRole{Role: "rev"}
	wf.Roles["panel"] = protocol.Role{All: map[string]protocol.ChildRole{"a": rev, "b": rev}, Join: "results", Parallel: 2}
	wf.Roles["rev"] = protocol.Role{}
	return wf
}

// eachOf returns the same workflow, with a child per item of the plan.
func eachOf() protocol.Workflow {
	wf := panelOf()
	wf.Roles["panel"] = protocol.Role{Each: &protocol.EachRole{Of: "meta.items", ChildRole: protocol.ChildRole{Role: "rev"}}, Join: "results"}
	return wf
}

// planned returns a thread of a workflow after its first step.
func planned(w *statustest.World, wf protocol.Workflow) string {
	id := w.Start(w.Workflow(wf), heads.Facts{})
	w.Step(id, protocol.Step{Role: "plan", Usage: statustest.Usage(0)}, map[string]any{"$status": "ok", "items": []any{"x", "y", "x"}})
	return id
}

// completes runs a child to its end at the given cost.
func completes(w *statustest.World, id string, usd float64) {
	w.Step(id, protocol.Step{Role: "rev", Usage: statustest.Usage(usd)}, statustest.Answer("ok"))
	w.End(id, completed)
}

// The state of a parent follows from its children, and so does which of them are due.
func TestParentsAndChildren(t *testing.T) {
	t.Parallel()
	type world = statustest.World
	broke := &rundir.Error{Code: protocol.CodeTimeout, Message: "it broke"}
	done := func(w *world, child string) { completes(w, child, 0) }
	fails := func(w *world, child string) {
		w.Record(child, rundir.Record{Role: "rev", Status: rundir.Failed, Error: broke})
	}
	asks := func(w *world, child string) {
		w.Step(child, protocol.Step{Role: "rev"}, statustest.Answer("$SUSPEND"))
	}
	parks := func(w *world, child string) {
		require.NoError(w.T, w.Heads.SetFacts(w.T.Context(), child, heads.Facts{ParkedUntil: parked}))
	}
	works := func(w *world, child string) {
		w.Record(child, rundir.Record{Role: "rev", Status: rundir.Running})
		w.Alive(child)
	}
	nothing := func(*world, string) {}
	for name, tt := range map[string]struct {
		a, b        func(w *world, child string)
		want        stood
		statusA, b2 protocol.Status
		due         string // "p" is the parent
	}{
		"begun":                 {nothing, nothing, stood{Status: waits, Role: "panel"}, idle, idle, "ab"},
		"one at work":           {works, done, stood{Status: waits, Role: "panel"}, running, completed, ""},
		"one has failed":        {fails, done, stood{Status: failed, Role: "panel", Code: protocol.CodeTimeout}, failed, completed, ""},
		"failed beside one due": {fails, nothing, stood{Status: waits, Role: "panel"}, failed, idle, "b"},
		"one asks":              {asks, done, stood{Status: suspended, Suspended: "panel", Asks: "I need a person"}, suspended, completed, ""},
		"one is parked":         {done, parks, stood{Status: limited, Role: "panel"}, completed, limited, ""},
		"both have ended":       {done, done, stood{Status: idle, Role: "panel"}, completed, completed, "p"},
		"one was ended": {func(w *world, child string) { w.End(child, cancelled) }, done,
			stood{Status: idle, Role: "panel"}, cancelled, completed, "p"},
		"one is damaged": {func(w *world, child string) {
			asks(w, child)
			pos, err := w.HeadPosition(w.T.Context(), child)
			require.NoError(w.T, err)
			w.Lose(pos.Thread.Last.Output)
		}, done, stood{Status: failed, Role: "panel", Code: protocol.CodeCorrupt}, corrupt, completed, ""},
		"its end is not noted": {func(w *world, child string) {
			w.Step(child, protocol.Step{Role: "rev"}, statustest.Answer("ok"))
		}, done, stood{Status: waits, Role: "panel"}, idle, completed, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := statustest.New(t)
			id := planned(w, panelOf())
			before, err := w.Show(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, stood{Status: idle, Role: "panel"}, of(before), "the next step starts them")
			kids := w.StartChildren(id)
			tt.a(w, kids["a"])
			tt.b(w, kids["b"])
			out, err := w.Show(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, tt.want, of(out))
			require.Equal(t, 2, out.Parallel)
			require.Equal(t, []protocol.ChildOutput{
				{Key: "a", Thread: kids["a"], Status: tt.statusA}, {Key: "b", Thread: kids["b"], Status: tt.b2},
			}, out.Children)
			due, err := w.Due(t.Context())
			require.NoError(t, err)
			names, got := map[string]string{id: "p", kids["a"]: "a", kids["b"]: "b"}, ""
			for _, thread := range due {
				got += names[thread]
			}
			require.ElementsMatch(t, []byte(tt.due), []byte(got))
		})
	}
}

// Children belong to one head of their parent. If the parent continues elsewhere, they are no longer needed.
func TestChildrenOfAnotherHead(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := planned(w, panelOf())
	kids := w.StartChildren(id)
	started, err := w.Started(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, started, 2)
	require.Equal(t, "a", started[0].Key)
	require.Equal(t, kids["b"], started[1].Thread)
	require.False(t, started[0].Ended)
	w.End(kids["a"], cancelled)
	started, err = w.Started(t.Context(), id)
	require.NoError(t, err)
	require.True(t, started[0].Ended)
	require.Equal(t, cancelled, started[0].Status)

	w.Step(id, protocol.Step{Role: "panel"}, statustest.Answer("again"))
	started, err = w.Started(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, started)
	due, err := w.Due(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{id}, due)
	w.End(id, cancelled)
	started, err = w.Started(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, started, "it has ended")
}

// If a person asks for all children again, new ones replace the existing ones.
func TestChildrenAreAskedAgain(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := planned(w, panelOf())
	first := w.StartChildren(id)
	again := func(status string) {
		pos, err := w.HeadPosition(t.Context(), id)
		require.NoError(t, err)
		at := children.Place{Thread: id, Head: pos.Thread.Head, Role: "panel"}
		require.NoError(t, w.Heads.SetFacts(t.Context(), id, heads.Facts{Attempts: map[string]int{at.AttemptKey(""): 1}}))
	}
	again("")
	out, err := w.Show(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, idle, out.Status)
	require.NotContains(t, slices.Collect(maps.Values(first)), out.Children[0].Thread)
	second := w.StartChildren(id)
	completes(w, second["a"], 0)
	completes(w, second["b"], 0)

	// The role asks a person, who has it ask again.
	w.Join(id, "ask")
	pos, err := w.HeadPosition(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, moderator.Suspend, pos.Next.Kind)
	require.False(t, pos.Again)
	again("")
	pos, err = w.HeadPosition(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, moderator.Fan, pos.Next.Kind)
	require.True(t, pos.Again)
	require.False(t, pos.Lifted)
	require.Len(t, pos.Children, 2)
	before, err := w.StateBefore(t.Context(), pos)
	require.NoError(t, err)
	require.Equal(t, "plan", before.Last.Role)

	// The role asks again: StateBefore still returns the state before the first question.
	third := w.StartChildren(id)
	completes(w, third["a"], 0)
	completes(w, third["b"], 0)
	w.Join(id, "ask")
	pos, err = w.HeadPosition(t.Context(), id)
	require.NoError(t, err)
	before, err = w.StateBefore(t.Context(), pos)
	require.NoError(t, err)
	require.Equal(t, "plan", before.Last.Role)
	require.Equal(t, 1, before.Steps)
}

// A person can lift the step limit for a role with children as for any other.
func TestChildrenBeyondALimit(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	wf := panelOf()
	wf.Limits = &protocol.Limits{MaxSteps: 1}
	id := planned(w, wf)
	pos, err := w.HeadPosition(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, moderator.ByLimit, pos.Next.Cause)
	require.NoError(t, w.Heads.SetFacts(t.Context(), id, heads.Facts{Attempts: map[string]int{pos.Place().AttemptKey(""): 1}}))
	pos, err = w.HeadPosition(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, moderator.Fan, pos.Next.Kind)
	require.True(t, pos.Lifted)
	require.False(t, pos.Again)
}

func TestChildByKey(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	id := planned(w, panelOf())
	_, err := w.Child(ctx, id, "a")
	require.Equal(t, protocol.CodeNotFound, fault.Of(err).Code)
	require.Contains(t, hints.All("", fault.Of(err))[0], "uwf thread resume "+id, "it can be started")
	kids := w.StartChildren(id)
	for key, want := range kids {
		got, err := w.Child(ctx, id, key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = w.Child(ctx, id, "c")
	require.Equal(t, protocol.CodeNotFound, fault.Of(err).Code)
	require.Contains(t, hints.All("", fault.Of(err)), "uwf thread show "+id)

	completes(w, kids["a"], 0)
	w.End(kids["b"], cancelled)
	joined := w.Join(id, "ok")
	got, err := w.Child(ctx, id, "b")
	require.NoError(t, err)
	require.Equal(t, kids["b"], got, "of the newest join")
	all, err := w.Joined(ctx, id, joined)
	require.NoError(t, err)
	require.Equal(t, []protocol.ChildOutput{{Key: "a", Thread: kids["a"], Status: completed}, {Key: "b", Thread: kids["b"], Status: cancelled}}, all)

	// A fork shares the step, which was made with the original's children.
	fork := w.Start(w.Workflow(panelOf()), heads.Facts{Fork: &heads.Fork{Thread: id, Step: joined}})
	require.NoError(t, w.Heads.Move(ctx, fork, w.At(fork), joined))
	ofFork, err := w.Joined(ctx, fork, joined)
	require.NoError(t, err)
	require.Equal(t, all, ofFork)

	none, err := w.Joined(ctx, id, first(w, id))
	require.NoError(t, err)
	require.Nil(t, none, "nothing was joined before")
}

// first returns the start of a thread.
func first(w *statustest.World, id string) protocol.Hash {
	t, err := thread.Open(w.T.Context(), w.Store, w.At(id))
	require.NoError(w.T, err)
	return t.StartHash
}

// Children for items have labels, before they start and after they were joined; equal items have one each.
func TestLabels(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := planned(w, eachOf())
	kids := w.StartChildren(id)
	require.Len(t, kids, 3)
	out, err := w.Show(t.Context(), id)
	require.NoError(t, err)
	labels := func(of []protocol.ChildOutput) (all []string) {
		for _, c := range of {
			all = append(all, c.Label)
		}
		return all
	}
	require.Equal(t, []string{"x", "y", "x"}, labels(out.Children))
	for _, child := range kids {
		completes(w, child, 0)
	}
	joined, err := w.Joined(t.Context(), id, w.Join(id, "ok"))
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y", "x"}, labels(joined))
}

// A step is damaged if it lists as a child a thread that isn't one.
func TestJoinedOfNoChild(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := planned(w, panelOf())
	other := planned(w, lineOf("plan"))
	head := w.Step(id, protocol.Step{Role: "panel", Children: []protocol.ChildEnded{{Key: "a", Head: w.At(other), Status: completed}}}, statustest.Answer("ok"))
	_, err := w.Joined(t.Context(), id, head)
	require.Equal(t, protocol.CodeCorrupt, fault.Of(err).Code)
}

// A parent's limits apply to its children, whose costs count once, before and after the join.
func TestCostsOfChildren(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	wf := panelOf()
	wf.Limits = &protocol.Limits{MaxCostUSD: 1, MaxTokens: 500}
	id := planned(w, wf)
	kids := w.StartChildren(id)
	spent := func() protocol.Amount {
		_, spent, err := w.Spending(ctx, id)
		require.NoError(t, err)
		return spent
	}
	require.Equal(t, protocol.Amount{Tokens: 10, TimeMs: 1000}, spent())

	tries(w, kids["b"], statustest.Usage(0.5))
	require.Equal(t, protocol.Amount{CostUSD: 0.5, Tokens: 20, TimeMs: 1000}, spent())
	pos, err := w.HeadPosition(ctx, kids["a"])
	require.NoError(t, err)
	requireBudget(t, pos, 0.5, 480)
	require.Equal(t, moderator.Run, pos.Next.Kind)
	w.Step(kids["a"], protocol.Step{Role: "rev", Usage: statustest.Usage(0.25)}, statustest.Answer("$SUSPEND"))
	require.Equal(t, protocol.Amount{CostUSD: 0.75, Tokens: 30, TimeMs: 2000}, spent())
	completes(w, kids["a"], 0.25)
	require.Equal(t, protocol.Amount{CostUSD: 1, Tokens: 40, TimeMs: 3000}, spent())
	out, err := w.Show(ctx, kids["b"])
	require.NoError(t, err)
	require.Equal(t, stood{Status: suspended, Suspended: "rev", Code: protocol.CodeLimit}, of(out), "its parent may not cost more")
	require.Contains(t, out.Error.Hint, id)
	require.NotContains(t, out.Error.Hint, kids["b"])

	w.End(kids["b"], cancelled)
	require.NoError(t, w.Heads.SetFacts(ctx, id, heads.Facts{Limits: &heads.Limits{More: protocol.Amount{CostUSD: 1}}}))
	before := spent()
	w.Join(id, "ok")
	after := spent()
	require.Equal(t, before.CostUSD, after.CostUSD, "with what the failed try of the cancelled child has cost")
	require.Equal(t, before.Tokens, after.Tokens)
}

// requireBudget checks what a run may still spend.
func requireBudget(t *testing.T, pos *status.Position, usd float64, tokens int64) {
	t.Helper()
	b := pos.Budget()
	require.Equal(t, []any{usd, tokens}, []any{*b.CostUSD, *b.Tokens})
	require.Nil(t, b.TimeMs)
}
