package remotetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

func swaps(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 3)
	c.Push(w, c.Head())
	_, err := w.Thread(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread)
	conflict(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[1]}),
		remote.ConflictError{Thread: idA, Want: c.Heads[0]})
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Heads[1]}))
	conflict(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Heads[2]}), remote.ConflictError{Thread: idA,
		Got: c.Heads[1]})

	other := w.open()
	requireHead(t, other, idA, c.Heads[1])
	require.NoError(t, other.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[1], Head: c.Heads[2]}))
	conflict(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[1], Head: c.Heads[3]}),
		remote.ConflictError{Thread: idA, Want: c.Heads[1], Got: c.Heads[2]})
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[2], Head: c.Heads[2]}), "a move to where it is")
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[2], Head: c.Heads[1]}),
		"a step may be taken back")
	requireHead(t, other, idA, c.Heads[1])
}

func ends(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 2)
	c.Begin(w, idA)
	end := &remote.Ended{Workflow: c.Workflow, Status: protocol.StatusCompleted, CompletedAt: 5}
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), Head: c.Head(), Ended: end}))
	got, err := w.open().Thread(ctx, idA)
	require.NoError(t, err)
	require.Equal(t, end, got.Ended)

	next := c.After(c.Head(), 7)
	c.Push(w, next)
	conflict(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), Head: next}), remote.ConflictError{Thread: idA,
		Want: c.Head(), Got: c.Head(), Ends: true})
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), WasEnded: true, Head: next}), "it goes on")
	conflict(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: next, WasEnded: true, Head: next}),
		remote.ConflictError{Thread: idA, Want: next, WantEnd: true, Got: next})
	requireHead(t, w, idA, next)

	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idB, Head: next, Ended: end}), "one may come when it has ended")
	got, err = w.Thread(ctx, idB)
	require.NoError(t, err)
	require.Equal(t, end, got.Ended)
	again := &remote.Ended{Workflow: c.Workflow, Status: protocol.StatusCancelled, CompletedAt: 6}
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idB, Was: next, WasEnded: true, Head: next, Ended: again}))
	got, err = w.Thread(ctx, idB)
	require.NoError(t, err)
	require.Equal(t, again, got.Ended)
}

// hollow checks that a head cannot refer to missing nodes.
func hollow(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 2)
	all := c.All(c.Head())
	var none *remote.MissingError
	require.ErrorAs(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Head()}), &none)
	require.Equal(t, string(c.Head()), none.Hash)
	for _, h := range []cas.Hash{all[len(all)-1], c.Heads[1], c.Workflow} {
		_, err := w.Put(ctx, []remote.Record{c.Record(h)})
		require.NoError(t, err)
		require.ErrorAs(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Head()}), &none)
	}
	_, err := w.Thread(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread)
	c.Push(w, c.Head())
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Head()}))

	next := c.After(c.Head(), 9)
	_, err = w.Put(ctx, []remote.Record{c.Record(next)})
	require.NoError(t, err)
	require.ErrorAs(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), Head: next}), &none, "what is new is whole")
	require.Error(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), Head: c.Workflow}), "a workflow is no head")
	gone := c.After(c.Head(), 10)
	after := c.After(gone, 11)
	for _, h := range c.All(after) {
		record := c.Record(h)
		if h == gone {
			record = c.tombstone(h, "why")
		}
		_, err = w.Put(ctx, []remote.Record{record})
		require.NoError(t, err)
	}
	for _, head := range []cas.Hash{gone, after} {
		require.Error(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), Head: head}), "a step cannot be redacted")
	}
	requireHead(t, w, idA, c.Head())
}

func facts(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 1)
	c.Push(w, c.Head())
	title, other := "a title", "another"
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Head(), Facts: heads.Facts{
		Title: &title, Labels: map[string]string{"a": "1"}, Fork: &heads.Fork{Step: c.Heads[0]},
		Workspace: &heads.Workspace{Mode: "none", Root: "/secret"}, Remote: &heads.Remote{Name: "team"},
		Imported: &heads.Imported{From: "f", Confirmed: true},
		Agents:   map[string]string{heads.AllRoles: "./evil"},
	}}))
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), Head: c.Head(),
		Facts: heads.Facts{Title: &other, ParkedUntil: 5}}))
	got, err := w.open().Thread(ctx, idA)
	require.NoError(t, err)
	require.Equal(t, heads.Facts{Title: &other, Labels: map[string]string{"a": "1"},
		Fork: &heads.Fork{Step: c.Heads[0]}, ParkedUntil: 5}, got.Facts,
		"what is set replaces what was, and what concerns one machine stays there")
}

func lists(t *testing.T, w world) {
	ctx := t.Context()
	require.Empty(t, collect(t, w.Threads(ctx, remote.Filter{})))
	c := NewChain(t, w.a, "p", 1)
	c.Push(w, c.Head())
	title := "t"
	end := &remote.Ended{Workflow: c.Workflow, Status: protocol.StatusCompleted, CompletedAt: 5}
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idC, Head: c.Head(), Facts: heads.Facts{Title: &title}}))
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Heads[0]}))
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idB, Head: c.Head(), Ended: end}))
	lease, err := w.Take(ctx, idA, "me", remote.MaxLease)
	require.NoError(t, err)

	other := w.open()
	all := collect(t, other.Threads(ctx, remote.Filter{}))
	require.Len(t, all, 3)
	require.NotNil(t, all[0].Lease)
	require.Equal(t, "me", all[0].Lease.Holder)
	require.Zero(t, all[0].Lease.Fence, "it is nobody else's")
	require.Equal(t, lease.Until, all[0].Lease.Until)
	all[0].Lease = nil
	a, b, c3 := remote.State{Thread: idA, Head: c.Heads[0]}, remote.State{Thread: idB, Head: c.Head(), Ended: end},
		remote.State{Thread: idC, Head: c.Head(), Facts: heads.Facts{Title: &title}}
	require.Equal(t, []remote.State{a, b, c3}, all)
	for _, test := range []struct {
		filter remote.Filter
		want   []string
	}{
		{remote.Filter{Active: true}, []string{idA, idC}},
		{remote.Filter{Ended: true}, []string{idB}},
		{remote.Filter{After: idA}, []string{idB, idC}},
		{remote.Filter{After: idC}, nil},
		{remote.Filter{Limit: 2}, []string{idA, idB}},
		{remote.Filter{Active: true, After: idA, Limit: 1}, []string{idC}},
	} {
		var got []string
		for _, s := range collect(t, other.Threads(ctx, test.filter)) {
			got = append(got, s.Thread)
		}
		require.Equal(t, test.want, got, "%+v", test.filter)
	}
	for _, err := range other.Threads(ctx, remote.Filter{}) {
		require.NoError(t, err)
		break
	}
	requireHead(t, other, idA, c.Heads[0])
}

func refusals(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 1)
	c.Begin(w, idA)
	end := func(status protocol.Status) *remote.Ended {
		return &remote.Ended{Workflow: c.Workflow, Status: status, CompletedAt: 1}
	}
	for name, s := range map[string]remote.Swap{
		"no thread id":       {Thread: "../../etc/passwd", Head: c.Head()},
		"no thread":          {Head: c.Head()},
		"no head":            {Thread: idB},
		"no hash":            {Thread: idB, Head: "no hash"},
		"no hash before":     {Thread: idA, Was: "no hash", Head: c.Head()},
		"ended as nothing":   {Thread: idB, WasEnded: true, Head: c.Head()},
		"a fence of nothing": {Thread: idB, Head: c.Head(), Fence: 1},
		"a fence below 0":    {Thread: idA, Was: c.Head(), Head: c.Head(), Fence: -1},
		"no end":             {Thread: idB, Head: c.Head(), Ended: end("")},
		"not an end":         {Thread: idB, Head: c.Head(), Ended: end(protocol.StatusResumed)},
		"an unknown end":     {Thread: idB, Head: c.Head(), Ended: end("lost")},
	} {
		require.Error(t, w.Swap(ctx, s), name)
	}
	for name, err := range map[string]error{
		"get":  failure(w.Get(ctx, []cas.Hash{"no hash"})),
		"walk": failure(w.Walk(ctx, []cas.Hash{"no hash"}, nil)),
		"many": failure(w.Get(ctx, make([]cas.Hash, remote.MaxHashes+1))),
	} {
		require.Error(t, err, name)
	}
	_, err := w.Missing(ctx, []cas.Hash{"../../etc/passwd"})
	require.Error(t, err)
	for _, id := range []string{idB, "", "no id", "../../etc/passwd"} {
		_, err := w.Thread(ctx, id)
		require.Error(t, err, id)
	}
	require.Len(t, collect(t, w.Threads(ctx, remote.Filter{})), 1)
	requireHead(t, w, idA, c.Head())
}

// races checks that only one of several clients can move a head from the same node, in every round.
func races(t *testing.T, w world) {
	const many, rounds = 8, 5
	c := NewChain(t, w.a, "p", 0)
	c.Begin(w, idA)
	remotes := connections(w, many)
	for round := range rounds {
		was := c.Head()
		next := make([]cas.Hash, many)
		for i := range next {
			next[i] = c.After(was, round*many+i)
			c.Push(w, next[i])
		}
		won := winner(t, many, func(i int) error {
			err := remotes[i].Swap(t.Context(), remote.Swap{Thread: idA, Was: was, Head: next[i]})
			var lost *remote.ConflictError
			if errors.As(err, &lost) && lost.Got != was {
				return errLost
			}
			return err
		})
		requireHead(t, w, idA, next[won])
		c.Heads = append(c.Heads, next[won])
	}
	won := winner(t, many, func(i int) error {
		return lostTo[*remote.ConflictError](remotes[i].Swap(t.Context(), remote.Swap{Thread: idB, Head: c.Heads[i%2]}))
	})
	requireHead(t, w, idB, c.Heads[won%2])
}

var errLost = errors.New("somebody else won")

// lostTo returns errLost if err is an E.
func lostTo[E error](err error) error {
	var lost E
	if errors.As(err, &lost) {
		return errLost
	}
	return err
}

// winner runs try concurrently and returns the index of the one that succeeds. All others must lose.
func winner(t *testing.T, many int, try func(i int) error) int {
	t.Helper()
	var (
		group sync.WaitGroup
		won   atomic.Int64
		count atomic.Int64
		errs  = make([]error, many)
	)
	begin := make(chan struct{})
	for i := range many {
		group.Go(func() {
			<-begin
			switch err := try(i); {
			case err == nil:
				won.Store(int64(i))
				count.Add(1)
			case !errors.Is(err, errLost):
				errs[i] = err
			}
		})
	}
	close(begin)
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 1, count.Load(), "exactly one wins")
	return int(won.Load())
}

func connections(w world, many int) []remote.Remote {
	remotes := make([]remote.Remote, many)
	for i := range remotes {
		remotes[i] = w.open()
	}
	return remotes
}

func names(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 1)
	var none *remote.MissingError
	require.ErrorAs(t, w.Register(ctx, "fix", "", c.Workflow), &none, "a name stands for what is there")
	c.Push(w, c.Head())
	require.NoError(t, w.Register(ctx, "fix", "", c.Workflow))
	require.NoError(t, w.Register(ctx, "also", "", c.Workflow))
	other := w.open()
	all, err := other.Workflows(ctx)
	require.NoError(t, err)
	require.Equal(t, []heads.Named{{Name: "also", Hash: c.Workflow}, {Name: "fix", Hash: c.Workflow}}, all)
	var taken *remote.NameError
	require.ErrorAs(t, other.Register(ctx, "fix", "", c.Workflow), &taken)
	require.Equal(t, remote.NameError{Name: "fix", Got: c.Workflow}, *taken)
	require.ErrorAs(t, other.Register(ctx, "new", c.Workflow, c.Workflow), &taken)
	require.NoError(t, other.Register(ctx, "fix", c.Workflow, c.Workflow))
	for _, name := range []string{"", string(make([]byte, remote.MaxName+1)), "\xff"} {
		require.Error(t, other.Register(ctx, name, "", c.Workflow))
	}
}

func canceled(t *testing.T, w world) {
	c := NewChain(t, w.a, "p", 1)
	c.Begin(w, idA)
	node := castest.Node(t, w.a, "never")
	other := w.open()
	_, err := other.Info(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, put := other.Put(ctx, []remote.Record{{Hash: node.Hash, File: cas.MarshalFile(node)}})
	_, take := other.Take(ctx, idA, "me", remote.MinLease)
	_, missing := other.Missing(ctx, c.Heads)
	for what, err := range map[string]error{
		"put": put, "take": take, "missing": missing, "swap": other.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(),
			Head: c.Heads[0]}),
		"get": failure(other.Get(ctx, c.Heads)), "list": failure(other.Threads(ctx, remote.Filter{})),
		"name": other.Register(ctx, "x", "", c.Workflow),
	} {
		require.ErrorIs(t, err, context.Canceled, what)
	}
	absent, err := w.Missing(t.Context(), []cas.Hash{node.Hash})
	require.NoError(t, err)
	require.Len(t, absent, 1)
	requireHead(t, w, idA, c.Head())
}

func conflict(t *testing.T, err error, want remote.ConflictError) {
	t.Helper()
	var got *remote.ConflictError
	require.ErrorAs(t, err, &got)
	require.Equal(t, want, *got)
	require.Contains(t, got.Error(), fmt.Sprint(want.Got), "both heads are named")
}

func requireHead(t *testing.T, r remote.Remote, thread string, want cas.Hash) {
	t.Helper()
	got, err := r.Thread(t.Context(), thread)
	require.NoError(t, err)
	require.Equal(t, want, got.Head)
	require.Nil(t, got.Ended)
}
