// Package statustest provides homes with in-memory threads for tests. A test creates the chain of a thread
// directly and checks what the engine makes of it; no agent runs.
package statustest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker/lockertest"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/threadid"
)

// World is a home. Its clock only advances by one second for each new thread.
type World struct {
	status.Reader
	T        testing.TB
	Clock    time.Time
	Settings protocol.Config // config.yaml
	Warnings []string

	gone map[protocol.Hash]bool
}

// lossy is a store that can lose nodes.
type lossy struct {
	cas.Store
	gone map[protocol.Hash]bool
}

// Get implements [cas.Getter].
func (s lossy) Get(ctx context.Context, h protocol.Hash) (cas.Node, error) {
	if s.gone[h] {
		return cas.Node{}, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	}
	return s.Store.Get(ctx, h)
}

// Has implements [cas.Store].
func (s lossy) Has(ctx context.Context, h protocol.Hash) (bool, error) {
	if s.gone[h] {
		return false, nil
	}
	return s.Store.Has(ctx, h)
}

// New returns an empty home.
func New(t testing.TB) *World {
	dir := t.TempDir()
	w := &World{T: t, Clock: time.UnixMilli(1_800_000_000_000), gone: map[protocol.Hash]bool{}}
	w.Reader = status.Reader{
		Env: env.Env{
			Environ: []string{"HOME=" + dir}, Dir: dir,
			Now: func() time.Time { return w.Clock }, Rand: rand.NewChaCha8([32]byte{}),
		},
		Dirs: home.Dirs{Home: filepath.Join(dir, "home"), Store: filepath.Join(dir, "home", "cas")},
		FS:   durable.OS(), Store: lossy{castest.NewStore(t, cas.XXH3), w.gone}, Heads: fileheads.Open(dir, durable.OS()),
		Locks:  &lockertest.Memory{},
		Config: func(context.Context) (protocol.Config, error) { return w.Settings, nil },
		Hints:  func(why ...protocol.Reason) []string { return hints.Of("", why...) },
		Warn:   func(text string) { w.Warnings = append(w.Warnings, text) },
	}
	return w
}

// Add stores a payload.
func (w *World) Add(p protocol.Payload) protocol.Hash {
	w.T.Helper()
	b := cas.NewBatch(w.Store, w.Env.Now)
	h, err := b.Add(w.T.Context(), p)
	require.NoError(w.T, err)
	require.NoError(w.T, b.Commit(w.T.Context()))
	return h
}

// Lose makes the store lose a node.
func (w *World) Lose(h protocol.Hash) { w.gone[h] = true }

// Value stores a value with its schema.
func (w *World) Value(schema protocol.Hash, value any) protocol.Hash {
	w.T.Helper()
	b := cas.NewBatch(w.Store, w.Env.Now)
	h, err := b.AddValue(w.T.Context(), schema, value)
	require.NoError(w.T, err)
	require.NoError(w.T, b.Commit(w.T.Context()))
	return h
}

// Workflow stores a workflow whose roles accept any answer.
func (w *World) Workflow(wf protocol.Workflow) protocol.Hash {
	w.T.Helper()
	b := cas.NewBatch(w.Store, w.Env.Now)
	any, err := b.AddSchema(w.T.Context(), map[string]any{"type": "object"})
	require.NoError(w.T, err)
	require.NoError(w.T, b.Commit(w.T.Context()))
	roles := map[string]protocol.Role{}
	for name, r := range wf.Roles {
		r.Frontmatter, r.Capabilities = any, []string{}
		roles[name] = r
	}
	wf.Roles = roles
	return w.Add(wf)
}

// Line returns a workflow whose roles follow each other. The status "ok" leads to the next role, "again" to
// the same role, and "ask" suspends the thread.
func Line(roles map[string]protocol.Role, order ...string) protocol.Workflow {
	wf := protocol.Workflow{Name: "line", Roles: roles, Graph: map[string]protocol.GraphNode{}}
	wf.Graph[protocol.StartNode] = protocol.GraphNode{Edges: map[string]protocol.Edge{"_": {Role: order[0],
		Prompt: "{{{$prompt}}}"}}}
	for i, name := range order {
		next := protocol.Edge{Role: protocol.EndNode, Prompt: "Bye."}
		if i+1 < len(order) {
			next = protocol.Edge{Role: order[i+1], Prompt: "Go."}
		}
		wf.Graph[name] = protocol.GraphNode{Edges: map[string]protocol.Edge{
			"ok": next, "again": {Role: name, Prompt: "Again."}, "ask": {Role: protocol.SuspendNode, Prompt: "Why?"},
		}}
	}
	return wf
}

// Start starts a thread of a workflow.
func (w *World) Start(workflow protocol.Hash, facts heads.Facts) string {
	w.T.Helper()
	return w.StartWith(protocol.Start{Workflow: workflow, Prompt: "the task", Cwd: w.Env.Dir}, facts)
}

// StartWith starts a thread with the given start node.
func (w *World) StartWith(s protocol.Start, facts heads.Facts) string {
	w.T.Helper()
	w.Clock = w.Clock.Add(time.Second)
	id, err := threadid.New(w.Clock, w.Env.Rand)
	require.NoError(w.T, err)
	require.NoError(w.T, w.Heads.Add(w.T.Context(), id, w.Add(s), facts))
	return id
}

// Answer returns an output with a status.
func Answer(status string) map[string]any { return map[string]any{protocol.StatusKey: status} }

// Step adds a step to a thread. Unset fields of s default to a step that took a second and cost nothing. The
// output "$SUSPEND" suspends the thread.
func (w *World) Step(id string, s protocol.Step, output map[string]any) protocol.Hash {
	w.T.Helper()
	head := w.At(id)
	h := w.After(head, s, output)
	require.NoError(w.T, w.Heads.Move(w.T.Context(), id, head, h))
	return h
}

// After adds a step after a node without moving a head.
func (w *World) After(head protocol.Hash, s protocol.Step, output map[string]any) protocol.Hash {
	w.T.Helper()
	ctx := w.T.Context()
	t, err := thread.Open(ctx, w.Store, head)
	require.NoError(w.T, err)
	wf, err := t.Workflow(ctx)
	require.NoError(w.T, err)
	s.Start, s.Index, s.Visits = t.StartHash, t.Len(), map[string]int{}
	if t.Last != nil {
		s.Prev = &t.Head
		s.LimitBase = max(s.LimitBase, t.Last.LimitBase)
		maps.Copy(s.Visits, t.Last.Visits)
	}
	s.Visits[s.Role]++
	if s.Detail == "" {
		s.Detail = w.Add(protocol.Detail{Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}})
	}
	if output[protocol.StatusKey] == protocol.SuspendNode {
		s.Output = w.Add(protocol.NewSuspend("I need a person"))
	} else {
		s.Output = w.Value(wf.Roles[s.Role].Frontmatter, output)
	}
	if s.CompletedAtMs == 0 {
		s.StartedAtMs = w.Clock.UnixMilli()
		s.CompletedAtMs = s.StartedAtMs + 1000
	}
	s.ExtractedBy, s.EdgePrompt = protocol.ByValue, "x"
	if s.Cwd == "" {
		s.Cwd = t.Start.Cwd
	}
	return w.Add(s)
}

// End ends a thread.
func (w *World) End(id string, as protocol.Status) {
	w.T.Helper()
	t, err := thread.Open(w.T.Context(), w.Store, w.At(id))
	require.NoError(w.T, err)
	require.NoError(w.T, w.Heads.Archive(w.T.Context(), heads.Ended{
		Thread: id, Workflow: t.Start.Workflow, Head: t.Head, Status: as, CompletedAt: w.Clock.UnixMilli(),
	}))
}

// At returns the head of a thread.
func (w *World) At(id string) protocol.Hash {
	w.T.Helper()
	h, err := w.Head(w.T.Context(), id)
	require.NoError(w.T, err)
	return h
}

// StartChildren starts the children of a thread's next role, as the engine does, and returns their IDs by
// key.
func (w *World) StartChildren(id string) map[string]string {
	w.T.Helper()
	ctx := w.T.Context()
	pos, err := w.HeadPosition(ctx, id)
	require.NoError(w.T, err)
	require.Equal(w.T, moderator.Fan, pos.Next.Kind)
	ids := map[string]string{}
	for _, k := range pos.Children {
		ids[k.Key] = k.ID
		if k.Head != "" {
			continue
		}
		workflow := k.Workflow
		if workflow == "" {
			workflow = w.Add(moderator.RoleWorkflow(pos.Workflow, k.Role))
		}
		attempt := pos.Place().Attempt(pos.Facts, k.Key)
		of := pos.Thread.Head
		start := w.Add(protocol.Start{
			Workflow: workflow, Prompt: k.Prompt, Cwd: w.Env.Dir,
			Child: &protocol.Child{Of: of, Role: pos.Next.Role, Key: k.Key, Attempt: attempt},
		})
		parent := &heads.Parent{Thread: id, Head: of, Role: pos.Next.Role, Key: k.Key, Attempt: attempt}
		require.NoError(w.T, w.Heads.Add(ctx, k.ID, start, heads.Facts{Parent: parent}))
	}
	return ids
}

// Join adds the step that joins a thread's ended children, including their cost.
func (w *World) Join(id, status string) protocol.Hash {
	w.T.Helper()
	ctx := w.T.Context()
	pos, err := w.HeadPosition(ctx, id)
	require.NoError(w.T, err)
	require.Equal(w.T, moderator.Fan, pos.Next.Kind)
	s := protocol.Step{Role: pos.Next.Role, Agent: protocol.JoinAgent}
	var all protocol.Totals
	for _, k := range pos.Children {
		require.NotNil(w.T, k.Ended)
		sum, err := w.Cost(ctx, k.ID, k.Ended.Head)
		require.NoError(w.T, err)
		all.Spend(sum.Usage)
		s.Children = append(s.Children, protocol.ChildEnded{Key: k.Key, Head: k.Ended.Head, Status: k.Ended.Status,
			Usage: budget.CostOf(sum)})
	}
	s.Usage = all.Usage
	return w.Step(id, s, Answer(status))
}

// Record writes the record of a try of a thread's next step. Unset fields of r default to a try that started
// now.
func (w *World) Record(id string, r rundir.Record) {
	w.T.Helper()
	r.Thread = id
	if r.Head == "" {
		r.Head = w.At(id)
	}
	if r.StartedAt == 0 {
		r.StartedAt = w.Clock.UnixMilli()
	}
	require.NoError(w.T, w.RunDir(id).Write(r))
}

// Alive makes the agent in a thread's record appear alive until the test ends.
func (w *World) Alive(id string) {
	w.T.Helper()
	dir := w.RunDir(id)
	require.NoError(w.T, dir.Make())
	held, err := dir.Lock(w.T.Context(), rundir.LockPatience)
	require.NoError(w.T, err)
	w.T.Cleanup(func() { _ = held.Unlock() })
}

// Usage returns a usage of ten tokens and the given cost in dollars; a negative cost means unknown.
func Usage(usd float64) *protocol.Usage {
	u := &protocol.Usage{Turns: 1, OutputTokens: 10}
	if usd >= 0 {
		u.CostUSD = &usd
	}
	return u
}
