// Package headstest is the test suite for implementations of [heads.Heads].
package headstest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Thread ids, and possible heads. No node has these hashes.
const (
	idA, idB, idC = "01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB", "01ARZ3NDEKTSV4RRFFQ69G5FAC"

	h1, h2, h3 protocol.Hash = "4EAEYQKFHTJ23", "0123456789ABC", "7ZZZZZZZZZZZZ"
)

// Run runs the suite. open returns new empty heads on each call. Changes by one process or connection must be
// visible to all others.
func Run(t *testing.T, open func(t *testing.T) heads.Heads) {
	for name, test := range map[string]func(*testing.T, heads.Heads){
		"a head moves by compare and swap": moves,
		"a thread ends and is reopened":    ends,
		"lists":                            lists,
		"facts":                            facts,
		"one of many wins":                 races,
		"what is refused":                  refusals,
		"a context that has ended":         canceled,
		"a thread that has failed":         failed,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Forgetter is a [heads.Heads] that forgets ended threads, as package prune requires it.
type Forgetter interface {
	heads.Heads
	Forget(ctx context.Context, threads map[string]bool) ([]heads.Ended, error)
}

// RunForget tests Forget on new empty heads.
func RunForget(t *testing.T, x Forgetter) {
	ctx := t.Context()
	for id, h := range map[string]protocol.Hash{idA: h1, idB: h2, idC: h3} {
		require.NoError(t, x.Add(ctx, id, h, heads.Facts{ParkedUntil: 5}))
		require.NoError(t, x.Archive(ctx, ended(id, h)))
	}
	require.NoError(t, x.Reopen(ctx, ended(idB, h2), 2))
	forgotten, err := x.Forget(ctx, map[string]bool{idA: true, idB: true, "01ARZ3NDEKTSV4RRFFQ69G5FAZ": true})
	require.NoError(t, err)
	require.Equal(t, []heads.Ended{ended(idA, h1)}, forgotten, "neither active nor unknown ones")
	_, err = x.Ended(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread)
	known, err := x.AllFacts(ctx)
	require.NoError(t, err)
	require.NotContains(t, known, idA)
	require.Contains(t, known, idB)
	active, history := all(t, x)
	require.Equal(t, []heads.Head{{Thread: idB, Hash: h2}}, active)
	require.Equal(t, []heads.Ended{ended(idC, h3)}, history)
}

func moves(t *testing.T, x heads.Heads) {
	ctx := t.Context()
	_, err := x.Head(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread)
	require.NoError(t, x.Add(ctx, idA, h1, heads.Facts{}))
	require.ErrorIs(t, x.Add(ctx, idA, h2, heads.Facts{}), heads.ErrExists)
	requireHead(t, x, idA, h1)

	require.NoError(t, x.Move(ctx, idA, h1, h2))
	requireHead(t, x, idA, h2)
	conflict(t, x.Move(ctx, idA, h1, h3), heads.ConflictError{Thread: idA, Want: h1, Got: h2})
	requireHead(t, x, idA, h2)
	conflict(t, x.Move(ctx, idB, h1, h3), heads.ConflictError{Thread: idB, Want: h1})
	require.NoError(t, x.Move(ctx, idA, h2, h2), "a move to where it is")
}

func ends(t *testing.T, x heads.Heads) {
	ctx := t.Context()
	require.NoError(t, x.Add(ctx, idA, h1, heads.Facts{}))
	_, err := x.Ended(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread, "it is active")
	conflict(t, x.Archive(ctx, ended(idA, h2)), heads.ConflictError{Thread: idA, Want: h2, Got: h1})
	for _, e := range []heads.Ended{
		{Thread: idA, Head: h1, Status: "aborted"}, {Thread: idA, Head: h1, Status: protocol.StatusResumed}, {Thread: idA, Head: h1},
		{Thread: idA, Head: h1, Status: protocol.StatusCancelled, CompletedAt: heads.LastMs + 1},
		{Thread: idA, Head: h1, Status: protocol.StatusCancelled, Workflow: "no hash"},
	} {
		require.ErrorIs(t, x.Archive(ctx, e), &protocol.Error{Code: protocol.CodeInvalid}, "%v", e)
	}
	require.NoError(t, x.Archive(ctx, ended(idA, h1)))

	_, err = x.Head(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread)
	got, err := x.Ended(ctx, idA)
	require.NoError(t, err)
	require.Equal(t, ended(idA, h1), got)
	require.ErrorIs(t, x.Add(ctx, idA, h1, heads.Facts{}), heads.ErrExists, "ids are not used again")
	conflict(t, x.Move(ctx, idA, h1, h2), heads.ConflictError{Thread: idA, Want: h1})

	require.ErrorIs(t, x.Reopen(ctx, ended(idB, h1), 2), heads.ErrNoThread)
	conflict(t, x.Reopen(ctx, ended(idA, h2), 2), heads.ConflictError{Thread: idA, Want: h2, Got: h1})
	require.NoError(t, x.Reopen(ctx, got, 2))
	requireHead(t, x, idA, h1)
	_, err = x.Ended(ctx, idA)
	require.ErrorIs(t, err, heads.ErrNoThread)
	require.ErrorIs(t, x.Reopen(ctx, got, 2), heads.ErrExists)

	require.NoError(t, x.Move(ctx, idA, h1, h2))
	require.NoError(t, x.Archive(ctx, ended(idA, h2)))
	got, err = x.Ended(ctx, idA)
	require.NoError(t, err)
	require.Equal(t, h2, got.Head, "the newest end counts")
}

func lists(t *testing.T, x heads.Heads) {
	ctx := t.Context()
	active, history := all(t, x)
	require.Empty(t, active)
	require.Empty(t, history)
	for i, id := range []string{idC, idA, idB} {
		require.NoError(t, x.Add(ctx, id, []protocol.Hash{h1, h2, h3}[i], heads.Facts{}))
	}
	active, _ = all(t, x)
	require.Equal(t, []heads.Head{{Thread: idA, Hash: h2}, {Thread: idB, Hash: h3}, {Thread: idC, Hash: h1}}, active)

	require.NoError(t, x.Archive(ctx, ended(idC, h1)))
	require.NoError(t, x.Archive(ctx, ended(idA, h2)))
	active, history = all(t, x)
	require.Equal(t, []heads.Head{{Thread: idB, Hash: h3}}, active)
	require.Equal(t, []heads.Ended{ended(idC, h1), ended(idA, h2)}, history)

	require.NoError(t, x.Reopen(ctx, ended(idC, h1), 9))
	_, history = all(t, x)
	require.Equal(t, []heads.Ended{ended(idA, h2)}, history, "what is active has not ended")
	standings, err := heads.ThreadStates(ctx, x)
	require.NoError(t, err)
	require.Len(t, standings, 3)
	require.Nil(t, standings[idC].End)
	require.Equal(t, h2, standings[idA].End.Head)

	for _, err := range x.Heads(ctx) {
		require.NoError(t, err)
		break // leaving a loop early is allowed
	}
	for _, err := range x.History(ctx) {
		require.NoError(t, err)
		break
	}
}

func facts(t *testing.T, x heads.Heads) {
	ctx := t.Context()
	known, err := x.Facts(ctx, idA)
	require.NoError(t, err)
	require.Zero(t, known)

	title, other := "a title", "another"
	require.NoError(t, x.Add(ctx, idA, h1, heads.Facts{Title: &title, Fork: &heads.Fork{Step: h2}}))
	require.NoError(t, x.SetFacts(ctx, idA, heads.Facts{Title: &other, ParkedUntil: 5}))
	require.NoError(t, x.SetFacts(ctx, idB, heads.Facts{Title: &title}), "a thread need not be there yet")
	known, err = x.Facts(ctx, idA)
	require.NoError(t, err)
	require.Equal(t, heads.Facts{Title: &other, ParkedUntil: 5, Fork: &heads.Fork{Step: h2}}, known)

	require.NoError(t, x.Archive(ctx, ended(idA, h1)))
	everything, err := x.AllFacts(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]heads.Facts{idA: known, idB: {Title: &title}}, everything,
		"the end of a thread takes nothing away")
}

// races checks that exactly one of many concurrent moves from the same head succeeds.
func races(t *testing.T, x heads.Heads) {
	const many = 8
	ctx := t.Context()
	require.NoError(t, x.Add(ctx, idA, h1, heads.Facts{}))
	var won atomic.Int32
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			err := x.Move(ctx, idA, h1, h2)
			if err == nil {
				won.Add(1)
				return
			}
			conflict(t, err, heads.ConflictError{Thread: idA, Want: h1, Got: h2})
		})
	}
	group.Wait()
	require.EqualValues(t, 1, won.Load())
}

func refusals(t *testing.T, x heads.Heads) {
	ctx := t.Context()
	invalid := &protocol.Error{Code: protocol.CodeInvalid}
	require.ErrorIs(t, x.Add(ctx, idA, "no hash", heads.Facts{}), invalid)
	require.ErrorIs(t, x.Add(ctx, "", h1, heads.Facts{}), invalid)
	require.NoError(t, x.Add(ctx, idA, h1, heads.Facts{}))
	require.ErrorIs(t, x.Move(ctx, idA, h1, ""), invalid)
	for _, status := range []protocol.Status{"", protocol.StatusResumed} {
		e := ended(idA, h1)
		e.Status = status
		require.ErrorIs(t, x.Archive(ctx, e), invalid, "%q ends nothing", status)
	}
	requireHead(t, x, idA, h1)
}

// failed checks that a thread's failure is visible wherever its end is stored.
func failed(t *testing.T, x heads.Heads) {
	require.NoError(t, x.Add(t.Context(), idA, h1, heads.Facts{}))
	end := ended(idA, h1)
	end.Status = protocol.StatusFailed
	require.NoError(t, x.Archive(t.Context(), end))
	got, err := x.Ended(t.Context(), idA)
	require.NoError(t, err)
	require.Equal(t, end, got)
	_, history := all(t, x)
	require.Equal(t, []heads.Ended{end}, history)
	require.NoError(t, x.Reopen(t.Context(), end, 2))
	requireHead(t, x, idA, h1)
}

func canceled(t *testing.T, x heads.Heads) {
	require.NoError(t, x.Add(t.Context(), idA, h1, heads.Facts{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"add": x.Add(ctx, idB, h1, heads.Facts{}), "move": x.Move(ctx, idA, h1, h2), "archive": x.Archive(ctx,
			ended(idA, h1)),
		"facts": x.SetFacts(ctx, idA, heads.Facts{ParkedUntil: 1}),
	} {
		require.ErrorIs(t, err, context.Canceled, what)
	}
	requireHead(t, x, idA, h1)
}

func ended(thread string, head protocol.Hash) heads.Ended {
	return heads.Ended{Thread: thread, Workflow: h3, Head: head, Status: protocol.StatusCompleted, CompletedAt: 1}
}

func requireHead(t *testing.T, x heads.Heads, thread string, want protocol.Hash) {
	t.Helper()
	got, err := x.Head(t.Context(), thread)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// conflict can be called on any goroutine, unlike require.
func conflict(t *testing.T, err error, want heads.ConflictError) {
	t.Helper()
	var got *heads.ConflictError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func all(t *testing.T, x heads.Heads) (active []heads.Head, history []heads.Ended) {
	t.Helper()
	for h, err := range x.Heads(t.Context()) {
		require.NoError(t, err)
		active = append(active, h)
	}
	for e, err := range x.History(t.Context()) {
		require.NoError(t, err)
		history = append(history, e)
	}
	return active, history
}
