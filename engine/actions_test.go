//go:build unix

package engine

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func (w *world) verbs(id string) (verbs []string) {
	can, err := w.Reader.Actions(w.t.Context(), id)
	require.NoError(w.t, err)
	for _, a := range can {
		verbs = append(verbs, a.Verb)
	}
	return verbs
}

// The engine refuses none of the actions it lists for a thread, in any state.
func TestActionsAreNotRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,unclear,done")
	id := w.start()
	require.Equal(t, []string{"continue", "kill", "fork", "message"}, w.verbs(id), "before the first step")
	w.mustStep(id, StepOptions{})
	require.Equal(t, []string{"continue", "retry", "undo", "kill", "fork", "message"}, w.verbs(id))
	_, err := w.Undo(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, w.verbs(id), "redo")
	require.NotContains(t, w.verbs(id), "undo")
	_, err = w.Redo(t.Context(), id)
	require.NoError(t, err)
	require.NotContains(t, w.verbs(id), "redo")
	require.NoError(t, w.Kill(t.Context(), id))
	require.Equal(t, []string{"fork"}, w.verbs(id), "a cancelled thread")
}

// The first action of a suspended thread is to answer, with the schema of the answer.
func TestActionsOfAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear,ready,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	can, err := w.Reader.Actions(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.VerbResume, can[0].Verb)
	require.Equal(t, map[string]any{"type": "string"}, can[0].Form)
	require.Equal(t, []string{"thread", "resume", id, "-p", "<answer>"}, can[0].Command)
	require.NotContains(t, w.verbs(id), protocol.VerbAnswer)
	_, err = w.Do(t.Context(), id, Work{Do: DoResume, Prompt: "that", Steps: UntilEnd})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCompleted, w.show(id).Status)
	verbs := w.verbs(id)
	require.Equal(t, protocol.VerbRead, verbs[0])
	require.True(t, slices.Contains(verbs, protocol.VerbResume) && slices.Contains(verbs, protocol.VerbUndo), verbs)
	require.False(t, slices.Contains(verbs, protocol.VerbContinue) || slices.Contains(verbs, protocol.VerbMessage), verbs)
}

// Work with an unknown Do is refused and changes nothing.
func TestWorkThatNoEngineKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	for _, work := range []Work{{Do: "resmue"}, {Steps: -1}} {
		_, err := w.Do(t.Context(), id, work)
		requireCode(t, err, protocol.CodeUsage)
		_, err = w.Background(t.Context(), id, work)
		requireCode(t, err, protocol.CodeUsage)
	}
	for _, more := range []More{{}, {Amount: protocol.Amount{CostUSD: -1}}} {
		_, err := w.Grant(t.Context(), id, protocol.Limits{}, more)
		requireCode(t, err, protocol.CodeUsage)
	}
	require.Equal(t, 0, w.agentRuns())
	require.Equal(t, protocol.Code(""), Code(nil))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Do(ended, id, Work{})
	require.Equal(t, protocol.CodeInterrupted, Code(err))
}

// Calls of Events are serialized, even if goroutines step different threads with one engine.
func TestEventsOfSeveralThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	e := w.Engine.serialized()
	busy, n := false, 0 // unsynchronized, for the race detector
	e.Events = func(Event) {
		require.False(t, busy)
		busy = true
		n++
		busy = false
	}
	var works sync.WaitGroup
	for range 3 {
		id := w.start()
		works.Go(func() {
			_, err := e.Do(t.Context(), id, Work{})
			require.NoError(t, err)
		})
	}
	works.Wait()
	require.Greater(t, n, 10)
}
