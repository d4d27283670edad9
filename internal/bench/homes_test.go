package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// begun returns a home as a fixture, whose thread has one step when it is created.
func (w *world) begun(b testing.TB, name string, n int, fill func(place)) place {
	return fixture(w, fmt.Sprint(name, "-", n), func() place {
		p := place{home: w.path(fmt.Sprint(name, "-", n))}
		p.thread = w.start(b, p.home)
		w.step(b, p)
		fill(p)
		return p
	})
}

// chain returns a home whose thread has n steps, or slightly more.
func (w *world) chain(b testing.TB, n int) place {
	return w.begun(b, "steps", n, func(p place) { grow(b, p, n) })
}

// amid returns a home whose thread has 10 steps, in a store of n nodes.
func (w *world) amid(b testing.TB, n int) place {
	return w.begun(b, "nodes", n, func(p place) {
		grow(b, p, 10)
		fill(b, filepath.Join(p.home, "cas"), n)
	})
}

// among returns a home with n threads, one of which is real; the others have the same head.
func (w *world) among(b testing.TB, n int) place {
	return w.begun(b, "threads", n, func(p place) {
		_, head := open(b, p)
		heads := make([]cas.Hash, n-1)
		for i := range heads {
			heads[i] = head
		}
		addThreads(b, p.home, heads)
	})
}

// crowd returns a home with n threads of one step each, with separate starts and heads.
func (w *world) crowd(b testing.TB, n int) place {
	return w.begun(b, "heads", n, func(p place) { addThreads(b, p.home, manyHeads(b, p, n-1)) })
}

// open opens the store of a home and finds the head of its thread.
func open(b testing.TB, p place) (*fsstore.Store, cas.Hash) {
	s, err := fsstore.Open(b.Context(), filepath.Join(p.home, "cas"), fsstore.Options{Home: p.home})
	require.NoError(b, err)
	head, err := fileheads.Open(p.home, durable.OS()).Head(b.Context(), p.thread)
	require.NoError(b, err)
	return s, head
}

// grow appends to a thread until it has n steps, without running processes. Each step has a different output
// and detail.
func grow(b testing.TB, p place, n int) {
	s, old := open(b, p)
	batch := cas.NewBatch(s, time.Now)
	head := old
	for {
		t, err := thread.Open(b.Context(), batch, head)
		require.NoError(b, err)
		if t.Len() >= n {
			break
		}
		head = extend(b, s, batch, t)
	}
	require.NoError(b, batch.Put(b.Context()))
	require.NoError(b, fileheads.Open(p.home, durable.OS()).Move(b.Context(), p.thread, old, head))
}

// extend appends a step like the last one, with different contents.
func extend(b testing.TB, s cas.Store, batch *cas.Batch, t *thread.Thread) cas.Hash {
	l := *t.Last
	before, err := batch.Get(b.Context(), l.Output)
	require.NoError(b, err)
	payload, err := cas.Encode(map[string]any{"$status": "again", "note": text(l.Index)})
	require.NoError(b, err)
	l.Output = s.Algorithm().Sum(before.Type, payload) // its type accepts this output
	require.NoError(b, s.Put(b.Context(), cas.Node{Hash: l.Output, Type: before.Type, Payload: payload, Timestamp: time.Now().UnixMilli()}))
	l.Detail, err = batch.Add(b.Context(), protocol.Detail{
		SessionID: fmt.Sprint("session-", l.Index), Capture: protocol.CaptureFinal, Turns: []cas.Hash{},
	})
	require.NoError(b, err)
	return another(b, batch, t, l)
}

// another appends a step like a given one.
func another(b testing.TB, batch *cas.Batch, t *thread.Thread, l thread.Step) cas.Hash {
	head, err := t.Append(b.Context(), batch, protocol.Step{
		Role: l.Role, Agent: l.Agent, EdgePrompt: l.EdgePrompt, Cwd: l.Cwd, SessionID: l.SessionID,
		Output: l.Output, Detail: l.Detail, Prompt: l.Prompt, ExtractedBy: protocol.ByFrontmatter,
		StartedAtMs: l.StartedAtMs, CompletedAtMs: l.CompletedAtMs,
	})
	require.NoError(b, err)
	return head
}

// manyHeads creates n threads like that of p and returns their heads.
func manyHeads(b testing.TB, p place, n int) []cas.Hash {
	s, head := open(b, p)
	model, err := thread.Open(b.Context(), s, head)
	require.NoError(b, err)
	batch := cas.NewBatch(s, time.Now)
	heads := make([]cas.Hash, n)
	for i := range heads {
		start := model.Start
		start.Prompt = fmt.Sprint("task ", i)
		h, err := batch.Add(b.Context(), start)
		require.NoError(b, err)
		t, err := thread.Open(b.Context(), batch, h)
		require.NoError(b, err)
		heads[i] = another(b, batch, t, *model.Last)
	}
	require.NoError(b, batch.Put(b.Context()))
	return heads
}

// addThreads adds active threads. Their IDs are older than every real one.
func addThreads(b testing.TB, home string, at []cas.Hash) {
	all := make([]heads.New, len(at))
	for i, h := range at {
		all[i] = heads.New{Head: heads.Head{Thread: fmt.Sprintf("01ARZ3NDEKTSV4RRFF%08d", i), Hash: h}}
	}
	require.NoError(b, fileheads.Open(home, durable.OS()).AddAll(b.Context(), all))
}

// text returns the content of the n-th node: about 250 bytes that compress well.
func text(n int) string { return fmt.Sprintf("node %d says something, but not much: %0200d", n, n) }

// fill puts n texts into a store without flushing them.
func fill(b testing.TB, dir string, n int) {
	s, err := fsstore.Open(b.Context(), dir, fsstore.Options{})
	require.NoError(b, err)
	const atOnce = 10_000
	for done := 0; done < n; {
		batch := cas.NewBatch(s, time.Now)
		for range min(atOnce, n-done) {
			_, err := batch.Add(b.Context(), protocol.Text(text(done)))
			require.NoError(b, err)
			done++
		}
		require.NoError(b, batch.Put(b.Context()))
	}
}
