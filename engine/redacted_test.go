//go:build unix

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
)

// bury redacts a node, even if that isn't allowed.
func (w *world) bury(h protocol.Hash) {
	w.t.Helper()
	ctx := context.Background()
	files, ok := w.Reader.Store.(*fsstore.Store)
	require.True(w.t, ok)
	n, err := files.Get(ctx, h)
	require.NoError(w.t, err)
	require.NoError(w.t, files.Redact(ctx, func() error { return nil }, cas.Tombstone{Hash: h, Type: n.Type, Reason: "why"}))
}

// A thread continues and can be forked if details and prompts of its steps were redacted. If routing needs a
// redacted node, the error states that.
func TestRedactedContent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "again")
	id := w.start()
	first := w.mustStep(id, StepOptions{}).Head
	head := w.mustStep(id, StepOptions{}).Head
	step := w.readStep(first)
	w.bury(step.Detail)
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	w.mustStep(id, StepOptions{})
	_, err := w.Fork(ctx, first, ForkOptions{})
	require.NoError(t, err)

	fork, err := w.Fork(ctx, head, ForkOptions{})
	require.NoError(t, err)
	output := w.readStep(head).Output
	w.bury(output)
	out := w.show(fork)
	require.Equal(t, protocol.StatusCorrupt, out.Status)
	require.Contains(t, out.Error.Message, "redacted: why")
	_, err = w.Fork(ctx, head, ForkOptions{})
	requireCode(t, err, protocol.CodeRedacted)
	_, err = w.Step(ctx, fork, StepOptions{})
	requireCode(t, err, protocol.CodeRedacted, "redacted: why")
}

// A thread held by Exclusive isn't stepped, and Exclusive fails while a thread is stepped.
func TestExclusive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "again")
	id := w.start()
	release, err := w.Exclusive(ctx, id)
	require.NoError(t, err)
	_, err = w.Step(ctx, id, StepOptions{})
	requireCode(t, err, protocol.CodeLocked, id)
	_, err = w.Exclusive(ctx, id)
	requireCode(t, err, protocol.CodeLocked, id)
	release()
	w.mustStep(id, StepOptions{})
	_, err = w.Exclusive(ctx, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	requireCode(t, err, protocol.CodeNotFound)
}

// Redacted content doesn't return if an agent produces it again: a turn is left out and the step counts; an
// output that routing needs is rejected.
func TestRedactedComesAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "again")
	id := w.start()
	first := w.readStep(w.mustStep(id, StepOptions{}).Head)
	detail, err := cas.Read[protocol.Detail](ctx, w.Reader.Store, first.Detail)
	require.NoError(t, err)
	w.bury(detail.Turns[0])
	second := w.readStep(w.mustStep(id, StepOptions{}).Head)
	require.Equal(t, first.Detail, second.Detail, "it says the same")
	_, err = w.Reader.Store.Get(ctx, detail.Turns[0])
	require.True(t, fault.IsRedacted(err))

	w.plays("ready")
	w.mustStep(id, StepOptions{})
	w.bury(first.Output)
	w.plays("retry")
	w.mustStep(id, StepOptions{})
	w.plays("again")
	_, err = w.Step(ctx, id, StepOptions{})
	requireCode(t, err, protocol.CodeRedacted)
	w.plays("ready")
	w.mustStep(id, StepOptions{Fresh: true})
}
