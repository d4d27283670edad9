package status_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
)

// Directories of earlier steps are relative to where the thread works now.
func TestHere(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := w.StartWith(protocol.Start{Workflow: w.Workflow(lineOf("plan")), Prompt: "x", Cwd: "/there"}, heads.Facts{})
	pos, err := w.HeadPosition(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "/there", pos.Dir())
	require.Equal(t, "/there/sub", pos.Here("/there/sub"))
	for root, all := range map[string]map[string]string{
		"/here":      {"": "", "/there": "/here", "/there/sub/x": "/here/sub/x", "/here/y": "/here/y", "/else": "/here", "/thereby": "/here"},
		"/there":     {"/else": "/else", "/there/sub": "/there/sub"},
		"/there/sub": {"/there/sub/x": "/there/sub/x", "/there/y": "/there/sub/y"},
	} {
		pos.Root = root
		require.Equal(t, root, pos.Dir())
		for dir, want := range all {
			require.Equal(t, want, pos.Here(dir), "%s in %s", dir, root)
		}
	}
}

// Conditions read the steps, newest first. A step that cannot be read is damage, not an answer of the graph.
func TestConditionsOverSteps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expression, want string
		lose             bool
	}{
		"the count":      {expression: "$count(steps) = 2", want: "last"},
		"the oldest":     {expression: "steps[0].output.n = 1", want: "last"},
		"the newest":     {expression: "steps[-1].output.n = 1", want: "plan"},
		"roles":          {expression: "$count(steps[role = 'plan']) = 2", want: "last"},
		"one is lost":    {expression: "$count(steps) = 2", lose: true},
		"none is needed": {expression: "meta.n = 2", lose: true, want: "last"},
		"an answer":      {expression: "$steps.plan.n = 2", lose: true, want: "last"},
		"no answer":      {expression: "$exists($steps.last)", want: "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := statustest.New(t)
			wf := lineOf("plan", "last")
			wf.Language = protocol.Language3
			wf.Graph["plan"] = protocol.GraphNode{Transitions: []protocol.Transition{
				{Edge: protocol.Edge{Role: "last", Prompt: "x"}, Condition: tt.expression}, {Edge: protocol.Edge{Role: "plan", Prompt: "x"}},
			}}
			id := w.Start(w.Workflow(wf), heads.Facts{})
			lost := w.Step(id, protocol.Step{Role: "plan"}, map[string]any{"$status": "ok", "n": 1})
			w.Step(id, protocol.Step{Role: "plan"}, map[string]any{"$status": "ok", "n": 2})
			if tt.lose {
				w.Lose(lost)
			}
			out, err := w.Show(t.Context(), id)
			require.NoError(t, err)
			if tt.want == "" {
				require.Equal(t, stood{Status: corrupt, Code: protocol.CodeCorrupt}, of(out))
				return
			}
			require.Equal(t, stood{Status: idle, Role: tt.want}, of(out))
		})
	}
}

// If the evaluation of a condition is canceled, Position returns that error.
func TestConditionsThatAreCutOff(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	wf := lineOf("plan")
	wf.Graph["plan"] = protocol.GraphNode{Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: "plan", Prompt: "x"}, Condition: "$count(steps) = 2"}}}
	id := w.Start(w.Workflow(wf), heads.Facts{})
	first := w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("ok"))
	w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("ok"))
	ctx, cancel := context.WithCancel(t.Context())
	w.Reader.Store = ending{w.Store, cancel, first}
	_, err := w.Position(ctx, id, w.At(id))
	require.ErrorIs(t, err, context.Canceled)
}

// ending cancels a context when a node is read.
type ending struct {
	cas.Store
	end  func()
	node protocol.Hash
}

func (e ending) Get(ctx context.Context, h protocol.Hash) (cas.Node, error) {
	if h == e.node {
		e.end()
	}
	return e.Store.Get(ctx, h)
}

// Given facts aren't read again, and what was read for a step is read once.
func TestReaders(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	other := w.Start(w.Workflow(lineOf("plan")), heads.Facts{ParkedUntil: parked})
	knowing := w.Knowing(id, &heads.Facts{ParkedUntil: parked})
	for _, thread := range []string{id, other} {
		out, err := knowing.Show(ctx, thread)
		require.NoError(t, err)
		require.Equal(t, limited, out.Status)
	}
	out, err := w.Show(ctx, id)
	require.NoError(t, err)
	require.Equal(t, idle, out.Status)

	reads, configs := &counting{Store: w.Store}, 0
	w.Reader.Store = reads
	w.Reader.Config = func(context.Context) (protocol.Config, error) { configs++; return protocol.Config{}, nil }
	once := w.ConfigOnce().Recalling()
	for range 3 {
		_, err = once.HeadPosition(ctx, id)
		require.NoError(t, err)
	}
	require.Equal(t, 2, reads.n, "the start and its workflow")
	require.Equal(t, 1, configs)
	configs = 0
	overview := w.Overview()
	for range 5 {
		for range overview.Threads(ctx, []status.Listed{{Thread: id, Head: w.At(id)}}) {
		}
	}
	require.Equal(t, 1, configs)
}

// A person's form is the role's schema. The error for an invalid head says where the head is stored.
func TestPositionsOfDamage(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	wf := statustest.Line(map[string]protocol.Role{"check": {Person: true}}, "check")
	workflow := w.Workflow(wf)
	id := w.Start(workflow, heads.Facts{})
	pos, err := w.HeadPosition(ctx, id)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"type": "object"}, pos.Form)
	require.Zero(t, pos.LimitBase())

	w.Reader.Heads = placed{w.Heads}
	for head, named := range map[protocol.Hash]bool{"0000000000000": true, w.Add(protocol.Text("no thread")): true, pos.Thread.Start.Workflow: true} {
		_, err = w.Position(ctx, id, head)
		require.Equal(t, protocol.CodeCorrupt, fault.Of(err).Code)
		require.Equal(t, named, contains(err, "threads.yaml:7"))
	}
	w.Step(id, protocol.Step{Role: "check", LimitBase: 3}, statustest.Answer("again"))
	pos, err = w.HeadPosition(ctx, id)
	require.NoError(t, err)
	require.Equal(t, 3, pos.LimitBase())
	before, err := w.BeforeHead(ctx, pos)
	require.NoError(t, err)
	require.Nil(t, before.Thread.Last)
	require.Equal(t, pos.Previous(), before.Thread.Head)
	w.Lose(pos.Thread.StartHash)
	_, err = w.Position(ctx, id, pos.Thread.Head)
	require.Equal(t, protocol.CodeCorrupt, fault.Of(err).Code)
	require.False(t, contains(err, "threads.yaml:7"), "the head itself is there")
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// placed are heads whose storage a person can look up.
type placed struct{ anyHeads }

type anyHeads = heads.Heads

func (placed) ThreadPlace(context.Context, string) string { return "threads.yaml:7" }
