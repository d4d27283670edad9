package thread_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// fixture is a store with a start, an output and a detail to build chains of.
type fixture struct {
	*testing.T
	store                           *fsstore.Store
	workflow, start, output, detail cas.Hash
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, store: castest.NewStore(t, cas.XXH3)}
	f.commit(func(b *cas.Batch) {
		schema, err := b.AddSchema(t.Context(), map[string]any{"type": "object", "properties": map[string]any{"$status": map[string]any{"type": "string"}}})
		require.NoError(t, err)
		f.workflow, err = b.Add(t.Context(), protocol.Workflow{
			Name: "w", Roles: map[string]protocol.Role{"planner": {Capabilities: []string{}, Frontmatter: schema}}, Graph: map[string]protocol.GraphNode{},
		})
		require.NoError(t, err)
		f.start, err = b.Add(t.Context(), protocol.Start{Workflow: f.workflow, Prompt: "do it", Cwd: "/somewhere"})
		require.NoError(t, err)
		f.output, err = b.AddValue(t.Context(), schema, map[string]any{"$status": "ready"})
		require.NoError(t, err)
		f.detail = f.addDetail(b, protocol.Turn{Index: 0, Role: protocol.TurnAssistant, Content: "the answer"})
	})
	return f
}

func (f *fixture) commit(add func(b *cas.Batch)) {
	f.Helper()
	b := cas.NewBatch(f.store, func() time.Time { return time.UnixMilli(1700000000000) })
	add(b)
	require.NoError(f, b.Commit(f.Context()))
}

func (f *fixture) addDetail(b *cas.Batch, turns ...protocol.Turn) cas.Hash {
	f.Helper()
	d := protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []cas.Hash{}}
	for _, turn := range turns {
		h, err := b.Add(f.Context(), turn)
		require.NoError(f, err)
		d.Turns = append(d.Turns, h)
	}
	h, err := b.Add(f.Context(), d)
	require.NoError(f, err)
	return h
}

func (f *fixture) next(role string) protocol.Step {
	return protocol.Step{Role: role, Agent: "uwf-mock", Output: f.output, Detail: f.detail, ExtractedBy: protocol.ByValue}
}

// step makes one step after head, as an agent does.
func (f *fixture) step(head cas.Hash, n protocol.Step) cas.Hash {
	f.Helper()
	var h cas.Hash
	f.commit(func(b *cas.Batch) {
		t, err := thread.Open(f.Context(), b, head)
		require.NoError(f, err)
		h, err = t.Append(f.Context(), b, n)
		require.NoError(f, err)
	})
	return h
}

// chain makes n steps of alternating roles and returns all hashes, the start's first.
func (f *fixture) chain(n int) []cas.Hash {
	f.Helper()
	hashes := []cas.Hash{f.start}
	for i := range n {
		hashes = append(hashes, f.step(hashes[i], f.next([]string{"planner", "developer"}[i%2])))
	}
	return hashes
}

func (f *fixture) open(head cas.Hash) *thread.Thread {
	f.Helper()
	t, err := thread.Open(f.Context(), f.store, head)
	require.NoError(f, err)
	return t
}

// put stores an invalid step.
func (f *fixture) put(s protocol.Step) (h cas.Hash) {
	f.Helper()
	f.commit(func(b *cas.Batch) {
		var err error
		h, err = b.Add(f.Context(), s)
		require.NoError(f, err)
	})
	return h
}

func TestNewThreadHasNoSteps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	th := f.open(f.start)
	require.Equal(t, f.start, th.Head)
	require.Equal(t, f.start, th.StartHash)
	require.Equal(t, "do it", th.Start.Prompt)
	require.Nil(t, th.Last)
	require.Zero(t, th.Len())
	for range th.Steps(t.Context()) {
		t.Fatal("a thread without steps yields none")
	}
	w, err := th.Workflow(t.Context())
	require.NoError(t, err)
	require.Equal(t, "w", w.Name)
}

func TestAppendDerivesThePlaceInTheChain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hashes := f.chain(3)
	th := f.open(hashes[3])
	require.Equal(t, 3, th.Len())
	require.Equal(t, f.start, th.StartHash)
	require.Equal(t, hashes[3], th.Last.Hash)
	require.Equal(t, int64(1700000000000), th.Last.Timestamp)
	require.Equal(t, 2, th.Last.Index)
	require.Equal(t, &hashes[2], th.Last.Prev)
	require.Equal(t, map[string]int{"planner": 2, "developer": 1}, th.Last.Visits)
	require.Equal(t, 3, f.open(hashes[3]).Len(), "appending leaves a thread as it is")

	var seen []cas.Hash
	for s, err := range th.Steps(t.Context()) {
		require.NoError(t, err)
		seen = append([]cas.Hash{s.Hash}, seen...)
	}
	require.Equal(t, hashes[1:], seen)
}

func TestForkContinuesFromParent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hashes := f.chain(3)
	n := f.next("reviewer")
	fork := f.open(f.step(hashes[2], n))
	require.Equal(t, 2, fork.Last.Index)
	require.Equal(t, map[string]int{"planner": 1, "developer": 1, "reviewer": 1}, fork.Last.Visits)
	require.Equal(t, map[string]int{"planner": 2, "developer": 1}, f.open(hashes[3]).Last.Visits, "the other branch is as it was")
}

func TestLimitBaseStaysUntilItIsLifted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hashes := f.chain(2)
	require.Zero(t, f.open(hashes[2]).Last.LimitBase)
	lifted, n := 2, f.next("planner")
	n.LimitBase = lifted
	third := f.step(hashes[2], n)
	require.Equal(t, 2, f.open(third).Last.LimitBase)
	require.Equal(t, 2, f.open(f.step(third, f.next("planner"))).Last.LimitBase)
}

func TestOutput(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	th := f.open(f.chain(1)[1])
	out, err := th.Output(t.Context(), *th.Last)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"$status": "ready"}, out.Value)
	require.Nil(t, out.Suspend)

	n := f.next("planner")
	f.commit(func(b *cas.Batch) {
		n.Output, err = b.Add(t.Context(), protocol.NewSuspend("which database?"))
		require.NoError(t, err)
	})
	th = f.open(f.step(th.Head, n))
	out, err = th.Output(t.Context(), *th.Last)
	require.NoError(t, err)
	require.Equal(t, f.store.Kinds().Hash(protocol.KindSuspend), out.Type)
	require.Equal(t, "which database?", out.Suspend.Reason)
	require.Equal(t, map[string]any{"$status": "$SUSPEND", "reason": "which database?"}, out.Value)
}

func TestContentIsTheLastAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	said := func(role protocol.TurnRole, text string) protocol.Turn {
		return protocol.Turn{Role: role, Content: text}
	}
	for _, c := range []struct {
		name  string
		turns []protocol.Turn
		want  string
	}{
		{"none", nil, ""},
		{"one", []protocol.Turn{said(protocol.TurnAssistant, "done")}, "done"},
		{"the last of two", []protocol.Turn{said(protocol.TurnAssistant, "first"), said(protocol.TurnUser, "not so"), said(protocol.TurnAssistant, "second")}, "second"},
		{"a tool had the last word", []protocol.Turn{said(protocol.TurnAssistant, "look"), said(protocol.TurnTool, "ok")}, "look"},
		{"only a tool call last", []protocol.Turn{said(protocol.TurnAssistant, "look"), said(protocol.TurnAssistant, " \n")}, "look"},
		{"nobody answered", []protocol.Turn{said(protocol.TurnUser, "hello")}, ""},
	} {
		var detail cas.Hash
		f.commit(func(b *cas.Batch) { detail = f.addDetail(b, c.turns...) })
		got, err := thread.Content(t.Context(), f.store, detail)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
	_, err := thread.Content(t.Context(), f.store, f.start)
	require.ErrorAs(t, err, new(*cas.TypeError))
}

func TestHeadsThatAreNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := thread.Open(t.Context(), f.store, "0000000000000")
	require.ErrorIs(t, err, cas.ErrNotFound)
	for _, h := range []cas.Hash{f.output, f.detail, f.workflow, f.store.Kinds().MetaHash()} {
		_, err := thread.Open(t.Context(), f.store, h)
		var kind *cas.TypeError
		require.ErrorAs(t, err, &kind)
		require.Equal(t, protocol.KindStep, kind.Want)
	}
}

func TestChainsThatDoNotFit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var other cas.Hash
	f.commit(func(b *cas.Batch) {
		var err error
		other, err = b.Add(t.Context(), protocol.Start{Workflow: f.workflow, Prompt: "another", Cwd: "/"})
		require.NoError(t, err)
	})
	hashes := f.chain(2)
	missing := cas.Hash("0000000000000")
	good := f.open(hashes[2]).Last.Step
	for _, c := range []struct {
		name   string
		change func(s *protocol.Step)
	}{
		{"index skips", func(s *protocol.Step) { s.Index = 7 }},
		{"another thread's step", func(s *protocol.Step) { s.Start = other }},
		{"prev is the start", func(s *protocol.Step) { s.Prev = &f.start }},
		{"prev is an output", func(s *protocol.Step) { s.Prev = &f.output }},
		{"no prev", func(s *protocol.Step) { s.Prev = nil }},
		{"prev of the first", func(s *protocol.Step) { s.Index = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := good
			c.change(&s)
			err := readAll(t.Context(), f.store, f.put(s))
			require.ErrorAs(t, err, new(*cas.CorruptError))
			prosetest.Error(t, err)
		})
	}
	gap := good
	gap.Prev = &missing
	require.ErrorIs(t, readAll(t.Context(), f.store, f.put(gap)), cas.ErrNotFound)
	gap = good
	gap.Start = missing
	require.ErrorIs(t, readAll(t.Context(), f.store, f.put(gap)), cas.ErrNotFound)
	gap = good
	gap.Start = f.output
	require.ErrorAs(t, readAll(t.Context(), f.store, f.put(gap)), new(*cas.TypeError))
}

func readAll(ctx context.Context, r cas.Reader, head cas.Hash) error {
	th, err := thread.Open(ctx, r, head)
	if err != nil {
		return err
	}
	for _, err := range th.Steps(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// counting counts node reads.
type counting struct {
	cas.Reader
	reads int
}

func (c *counting) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	c.reads++
	return c.Reader.Get(ctx, h)
}

// TestAStepCostsTheSameInALongThread checks that the reads of an engine and an agent for one step don't grow
// with the thread.
func TestAStepCostsTheSameInALongThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	reads := map[int]string{}
	for _, length := range []int{10, 10_000} {
		c := &counting{Reader: f.store}
		th, err := thread.Open(t.Context(), c, f.longChain(length))
		require.NoError(t, err)
		require.Equal(t, length, th.Len())
		open := c.reads
		_, err = th.Workflow(t.Context())
		require.NoError(t, err)
		_, err = th.Output(t.Context(), *th.Last)
		require.NoError(t, err)
		_, err = th.Append(t.Context(), cas.NewBatch(f.store, time.Now), f.next("planner"))
		require.NoError(t, err)
		step := c.reads - open
		for range 3 {
			for range th.Steps(t.Context()) {
				break
			}
		}
		reads[length] = fmt.Sprintf("open %d, step %d, looks at the last %d", open, step, c.reads-open-step)
	}
	require.Equal(t, "open 2, step 2, looks at the last 0", reads[10])
	require.Equal(t, reads[10], reads[10_000])
}

// longChain puts steps without opening the thread for each.
func (f *fixture) longChain(n int) cas.Hash {
	f.Helper()
	head := f.start
	f.commit(func(b *cas.Batch) {
		th, err := thread.Open(f.Context(), f.store, f.start)
		require.NoError(f, err)
		for range n {
			head, err = th.Append(f.Context(), b, f.next("planner"))
			require.NoError(f, err)
			th.Head = head
			s, err := cas.Read[protocol.Step](f.Context(), b, head)
			require.NoError(f, err)
			th.Last = &thread.Step{Hash: head, Step: s}
		}
	})
	return head
}
