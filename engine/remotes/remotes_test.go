package remotes_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/hints"
)

func coded(t *testing.T, err error, code protocol.Code) *protocol.Error {
	t.Helper()
	var e *protocol.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, e.Message)
	return e
}

// A thread is handed to another home, continued there, and returned.
func TestHandOver(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	ann.step(id, 1)
	limit := func(s *side, usd float64) {
		require.NoError(t, s.Heads.SetFacts(t.Context(), id, heads.Facts{Limits: &heads.Limits{Limits: protocol.Limits{MaxCostUSD: usd}}}))
	}
	limit(ann, 1)
	_, err := bob.pull(id)
	coded(t, err, protocol.CodeNotFound)

	got, err := ann.push(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Added, got)
	require.Equal(t, ann.head(id), ann.facts(id).Remote.Head)
	got, err = ann.push(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Unchanged, got)

	got, err = bob.pull(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Added, got)
	require.Equal(t, ann.head(id), bob.head(id))
	require.Equal(t, "remote team", bob.facts(id).Imported.From)
	require.False(t, bob.facts(id).Imported.Inherited)

	require.InDelta(t, 1, bob.facts(id).Limits.MaxCostUSD, 0)
	bob.step(id, 2)
	limit(bob, 1e6)
	got, err = bob.push(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Advanced, got)
	got, err = ann.push(id)
	require.NoError(t, err)
	require.Equal(t, remotes.Behind, got)
	got, err = ann.pull(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Advanced, got)
	require.Equal(t, bob.head(id), ann.head(id))
	require.True(t, ann.facts(id).Imported.Inherited, "it began here")
	require.NoFileExists(t, filepath.Join(ann.Engine.Reader.Dirs.Home, "trusted.jsonl"), "its workflow is still hers")
	require.InDelta(t, 1, ann.facts(id).Limits.MaxCostUSD, 0, "what her own thread may cost nobody else says")
	got, err = ann.pull(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Unchanged, got)
}

// A thread that diverged is reported, and stays unchanged on both sides.
func TestDiverged(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	_, err := ann.push(id)
	require.NoError(t, err)
	_, err = bob.pull(id)
	require.NoError(t, err)
	a, b := ann.step(id, 1), bob.step(id, 2)
	_, err = ann.push(id)
	require.NoError(t, err)

	for _, try := range []func(string) (string, error){bob.push, bob.pull} {
		_, err := try(id)
		e := coded(t, err, protocol.CodeDiverged)
		require.Contains(t, e.Message, string(a))
		require.Contains(t, e.Message, string(b))
		require.Contains(t, hints.All("", e)[1], "uwf pull "+id+" team --discard")
	}
	coded(t, bob.shared(id, 3), protocol.CodeDiverged)
	require.Equal(t, b, bob.head(id))
	fetched, err := bob.Fetch(context.Background(), true)
	coded(t, err, protocol.CodeDiverged)
	require.Equal(t, remotes.Diverged, fetched.Threads[0].Result)

	done, err := bob.Pull(context.Background(), []string{id}, remotes.PullOptions{Discard: true})
	require.NoError(t, err)
	require.Equal(t, bundle.Replaced, done.Threads[0].Result)
	require.Equal(t, b, done.Threads[0].Was)
	require.Equal(t, a, bob.head(id))
	require.NoError(t, bob.shared(id, 3))
}

// A step that was replaced is replaced on both sides.
func TestReplaced(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	start := ann.head(id)
	old := ann.step(id, 1)
	_, err := ann.push(id)
	require.NoError(t, err)
	_, err = bob.pull(id)
	require.NoError(t, err)
	other := ann.made(start, 2)
	require.NoError(t, ann.Heads.Move(context.Background(), id, old, other))
	got, err := ann.push(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Replaced, got)
	got, err = bob.pull(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Replaced, got)
	require.Equal(t, other, bob.head(id))
}

// A thread that ended on one side ends on the other.
func TestEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	_, err := ann.push(id)
	require.NoError(t, err)
	_, err = bob.pull(id)
	require.NoError(t, err)
	require.NoError(t, ann.With(ctx, id, "", remotes.Options{}, func(ctx context.Context, e *engine.Engine) error {
		at := ann.head(id)
		next := ann.made(at, 1)
		require.NoError(t, e.Reader.Heads.Move(ctx, id, at, next))
		workflow, _ := ann.workflow()
		return e.Reader.Heads.Archive(ctx, heads.Ended{Thread: id, Workflow: workflow, Head: next, Status: protocol.StatusCompleted, CompletedAt: 1})
	}))
	_, err = bob.pull(id)
	require.NoError(t, err)
	ended, err := bob.Heads.Ended(ctx, id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCompleted, ended.Status)

	// Continuing it reopens it on both sides.
	require.NoError(t, bob.With(ctx, id, "", remotes.Options{}, func(ctx context.Context, e *engine.Engine) error {
		next := bob.made(ended.Head, 2)
		require.NoError(t, e.Reader.Heads.Reopen(ctx, ended, 2))
		return e.Reader.Heads.Move(ctx, id, ended.Head, next)
	}))
	got, err := ann.pull(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Advanced, got)
	require.Equal(t, bob.head(id), ann.head(id))
}

// A thread that was ended at the remote while its workflow was unreadable comes once that is repaired.
func TestEndWithoutWorkflow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	_, err := ann.push(id)
	require.NoError(t, err)
	require.NoError(t, fileheads.Open(r.Path, durable.OS()).Archive(ctx, heads.Ended{Thread: id, Head: ann.head(id), Status: protocol.StatusCancelled}))
	got, err := bob.pull(id)
	require.NoError(t, err)
	require.Equal(t, bundle.Added, got)
	ended, err := bob.Heads.Ended(ctx, id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCancelled, ended.Status)
}

// failing is a remote with one failing call, before or after its effect.
type failing struct {
	remote.Remote
	put, swap, after int // the number of the failing call, from 1; 0: none
	puts, swaps      int
}

var errGone = errors.New("the line is cut")

func (f *failing) Put(ctx context.Context, records []remote.Record) ([]cas.Hash, error) {
	if f.puts++; f.puts == f.put {
		return nil, errGone
	}
	return f.Remote.Put(ctx, records)
}

func (f *failing) Swap(ctx context.Context, s remote.Swap) error {
	f.swaps++
	if f.swaps == f.swap {
		return errGone
	}
	err := f.Remote.Swap(ctx, s)
	if f.swaps == f.after {
		return errGone
	}
	return err
}

// A step is never lost: if the remote doesn't get it, it is stored locally and pushed later.
func TestUnpublished(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*failing{"nodes": {put: 2}, "head": {swap: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.Remote = remotetest.NewDirectory(t, cas.XXH3, time.Now)
			ann, bob := newSide(t, f), newSide(t, f)
			id := ann.start()
			_, err := ann.push(id)
			require.NoError(t, err)
			start := ann.head(id)
			err = ann.shared(id, 1)
			require.ErrorIs(t, err, errGone)
			var unpublished *heads.UnpublishedError
			require.ErrorAs(t, err, &unpublished)
			made := ann.head(id)
			require.NotEqual(t, start, made, "the step is here")
			require.Equal(t, start, ann.facts(id).Remote.Head)

			require.NoError(t, ann.shared(id, 2), "the next step takes it along")
			require.NoError(t, ann.With(t.Context(), id, "", remotes.Options{}, func(_ context.Context, e *engine.Engine) error {
				require.True(t, e.Shared)
				return nil
			}))
			require.False(t, ann.Engine.Shared)
			_, err = bob.pull(id)
			require.NoError(t, err)
			require.Equal(t, ann.head(id), bob.head(id))
		})
	}
}

// A push reports the outcome for each thread.
func TestPushThatFailed(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*failing{"nodes": {put: 3}, "head": {swap: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.Remote = remotetest.NewDirectory(t, cas.XXH3, time.Now)
			ann := newSide(t, f)
			first, last := ann.start(), ann.start()
			_, err := ann.Push(t.Context(), []string{first, last}, remotes.PushOptions{})
			require.NoError(t, err)
			ann.step(first, 1)
			ann.step(last, 2)
			done, err := ann.Push(t.Context(), []string{first, last}, remotes.PushOptions{})
			require.ErrorIs(t, err, errGone)
			require.Len(t, done, 2)
			require.Equal(t, remotes.Failed, done[0].Result)
			require.Zero(t, done[0].Nodes)
			require.Contains(t, done[0].Error.Message, errGone.Error())
			require.NotEmpty(t, done[0].Error.Code)
			require.Equal(t, bundle.Advanced, done[1].Result, "the others are pushed")
			require.NotZero(t, done[1].Nodes)
			require.Nil(t, done[1].Error)
			got, err := ann.push(done[0].Thread) // threads of the same millisecond have no order
			require.NoError(t, err)
			require.Equal(t, bundle.Advanced, got)
		})
	}
}

// If only the response was lost, the push succeeds.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	f := &failing{Remote: remotetest.NewDirectory(t, cas.XXH3, time.Now), after: 2}
	ann := newSide(t, f)
	id := ann.start()
	_, err := ann.push(id)
	require.NoError(t, err)
	require.NoError(t, ann.shared(id, 1))
	require.Equal(t, ann.head(id), ann.facts(id).Remote.Head)
}

// A process that was suspended until its lease expired, and another has made the step, keeps its own step and
// overwrites nothing.
func TestFrozen(t *testing.T) {
	t.Parallel()
	clock := time.Now()
	r := remotetest.NewDirectory(t, cas.XXH3, func() time.Time { return clock })
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	_, err := ann.push(id)
	require.NoError(t, err)
	var theirs cas.Hash
	err = ann.With(context.Background(), id, "", remotes.Options{}, func(ctx context.Context, e *engine.Engine) error {
		clock = clock.Add(time.Hour)
		require.NoError(t, bob.shared(id, 2))
		theirs = bob.head(id)
		at := ann.head(id)
		return e.Reader.Heads.Move(ctx, id, at, ann.made(at, 1))
	})
	e := coded(t, err, protocol.CodeDiverged)
	require.Contains(t, e.Message, string(theirs))
	require.Contains(t, e.Message, string(ann.head(id)))
	at, err := r.Thread(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, theirs, at.Head)
}

// While a thread is leased, others see the owner.
func TestLeased(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, r), newSide(t, r)
	id := ann.start()
	_, err := ann.push(id)
	require.NoError(t, err)
	_, err = bob.pull(id)
	require.NoError(t, err)
	require.NoError(t, ann.With(context.Background(), id, "", remotes.Options{}, func(context.Context, *engine.Engine) error {
		coded(t, bob.shared(id, 1), protocol.CodeLocked)
		bob.step(id, 2)
		_, err := bob.push(id)
		coded(t, err, protocol.CodeLocked)
		return nil
	}))
	_, err = bob.push(id)
	require.NoError(t, err)
	start := ann.head(id)
	err = ann.With(context.Background(), id, start, remotes.Options{}, nil)
	e := coded(t, err, protocol.CodeHeadMoved)
	require.Contains(t, e.Message, string(bob.head(id)))
}

// lying is a remote that lies about its content.
type lying struct {
	remote.Remote
	state func(remote.State) remote.State
	node  func(remote.Record) (remote.Record, bool)
	list  func(cas.Hash) bool
}

func (l *lying) Thread(ctx context.Context, id string) (remote.State, error) {
	s, err := l.Remote.Thread(ctx, id)
	if l.state != nil {
		s = l.state(s)
	}
	return s, err
}

func (l *lying) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		for h, err := range l.Remote.Walk(ctx, roots, have) {
			if l.list != nil && !l.list(h) {
				continue
			}
			if !yield(h, err) {
				return
			}
		}
	}
}

func (l *lying) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	return func(yield func(remote.Record, error) bool) {
		for r, err := range l.Remote.Get(ctx, hashes) {
			keep := true
			if l.node != nil {
				r, keep = l.node(r)
			}
			if keep && !yield(r, err) {
				return
			}
		}
	}
}

// A remote isn't trusted: everything that can be checked is checked.
func TestHostile(t *testing.T) {
	t.Parallel()
	mem := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann := newSide(t, mem)
	id, other := ann.start(), ann.start()
	ann.step(id, 1)
	head := ann.step(id, 2)
	_, err := ann.Push(context.Background(), []string{id, other}, remotes.PushOptions{})
	require.NoError(t, err)
	n, err := ann.Store.Get(context.Background(), head)
	require.NoError(t, err)
	schema := n.Type
	count := 0
	for name, l := range map[string]*lying{
		"another thread":   {state: func(s remote.State) remote.State { s.Thread = other; return s }},
		"no hash":          {state: func(s remote.State) remote.State { s.Head = "../../x"; return s }},
		"a schema as head": {state: func(s remote.State) remote.State { s.Head = schema; return s }},
		"an odd end": {state: func(s remote.State) remote.State {
			s.Ended = &remote.Ended{Status: "x\x1b[2J", Workflow: head}
			return s
		}},
		"no workflow": {state: func(s remote.State) remote.State {
			s.Ended = &remote.Ended{Status: "completed", Workflow: head}
			return s
		}},
		"a parent that is not": {state: func(s remote.State) remote.State { s.Facts.Parent = &heads.Parent{Thread: "../x"}; return s }},
		"a circle": {state: func(s remote.State) remote.State {
			s.Facts.Parent = &heads.Parent{Thread: other}
			s.Thread = id
			return s
		}},
		"nothing is listed": {list: func(cas.Hash) bool { return false }},
		"one is not listed": {list: func(cas.Hash) bool { count++; return count != 7 }},
		"nothing is sent":   {node: func(r remote.Record) (remote.Record, bool) { return r, false }},
		"other content": {node: func(r remote.Record) (remote.Record, bool) {
			r.File = append([]byte(nil), r.File...)
			r.File[len(r.File)/2] ^= 1
			return r, true
		}},
		"another node": {node: func(r remote.Record) (remote.Record, bool) { r.Hash = head; return r, true }},
		"cut short":    {node: func(r remote.Record) (remote.Record, bool) { r.File = r.File[:len(r.File)/2]; return r, true }},
		"a tombstone of a step": {node: func(r remote.Record) (remote.Record, bool) {
			if r.Hash == head {
				r.File, _ = cas.MarshalTombstone(cas.Tombstone{Hash: head, Type: schema})
			}
			return r, true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l.Remote = mem
			bob := newSide(t, l)
			_, err := bob.pull(id)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "\x1b")
			var e *protocol.Error
			require.ErrorAs(t, err, &e)
			for range bob.Heads.Heads(context.Background()) {
				require.Fail(t, "a head has moved")
			}
		})
	}
}

// Redacted content stays redacted: neither side restores it, and neither redacts it on the other.
func TestRedacted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	mem := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, mem), newSide(t, mem)
	id := ann.start()
	head := ann.step(id, 1)
	_, err := ann.push(id)
	require.NoError(t, err)
	_, err = bob.pull(id)
	require.NoError(t, err)
	step, err := cas.Read[protocol.Step](ctx, ann.Store, head)
	require.NoError(t, err)
	secret := *step.Prompt
	ann.step(id, 2)
	_, err = redact.Node(ctx, ann.Store, ann.Heads, id, secret, redact.Options{Reason: "a key", Now: time.Now})
	require.NoError(t, err)
	done, err := ann.Push(ctx, []string{id}, remotes.PushOptions{})
	require.NoError(t, err)
	require.Empty(t, done[0].Whole, "below what is there already nothing is looked at")
	_, err = bob.pull(id)
	require.NoError(t, err)
	_, err = bob.Store.Get(ctx, secret)
	require.NoError(t, err, "it is whole there")
	bob.step(id, 3)
	_, err = bob.push(id)
	require.NoError(t, err)
	_, err = ann.pull(id)
	require.NoError(t, err)
	_, err = ann.Store.Get(ctx, secret)
	_, redacted := cas.AsRedacted(err)
	require.True(t, redacted, "it does not come back")

	// A pull from a remote that never had the content gets the tombstone.
	empty := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann.Remote = empty
	_, err = ann.push(id)
	require.NoError(t, err)
	eve := newSide(t, empty)
	pulled, err := eve.Pull(ctx, []string{id}, remotes.PullOptions{})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{secret}, pulled.Redactions)
}
