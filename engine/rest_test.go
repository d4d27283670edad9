//go:build unix

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// rests collects what is told of threads that come to rest.
func (w *world) rests() func() []string {
	var told []string
	w.AtRest, w.Events = true, func(ev Event) {
		if ev.Kind == AtRest {
			told = append(told, ev.Notice+" "+string(ev.Output.Status))
		}
	}
	return func() []string {
		now := told
		told = nil
		return now
	}
}

// Somebody is told of a question, once for each, and of the end; not of an answer that
// does not fit, nor of a look that finds everything as it was.
func TestRestedAtAQuestion(t *testing.T) {
	t.Parallel()
	w, id := gate(t)
	told := w.rests()
	w.mustStep(id, StepOptions{})
	require.Equal(t, []string{"waiting suspended"}, told())
	_, err := w.answers(id, "no", "")
	require.NoError(t, err)
	require.Equal(t, []string{"waiting suspended"}, told())
	_, err = w.answers(id, "perhaps", "")
	require.Error(t, err)
	w.mustStep(id, StepOptions{})
	require.Empty(t, told())
	_, err = w.answers(id, "yes", "")
	require.NoError(t, err)
	require.Equal(t, []string{"completed completed"}, told())
}

// Each try that fails is told of, and a limit of what a run may cost.
func TestRestedInVain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!exit:3")
	told := w.rests()
	id := w.start()
	for range 2 {
		_, err := w.Step(ctx, id, StepOptions{})
		require.Error(t, err)
		require.Equal(t, []string{"error error"}, told())
	}
	w = newBoundedWorld(t, "!cost:again/0.4/10", protocol.Limits{MaxCostUSD: 1})
	told = w.rests()
	id = w.start()
	w.mustStep(id, StepOptions{})
	require.Empty(t, told(), "it could go on")
	w.untilEnd(id)
	require.Equal(t, []string{"limit suspended"}, told())
	w.untilEnd(id)
	require.Empty(t, told())
}

// Where other machines step a thread, too, the fault of one of them is not the thread's end; what is
// wrong with the thread is, as before.
func TestRestedWhereOthersStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent           string
		machine, shared bool
		want            []string
	}{
		{"!limited:machine/0/9/done", true, true, nil},
		{"!limited:machine/0/9/done", true, false, []string{"error error"}},
		{"!exit:3", false, true, []string{"error error"}},
	} {
		w := newWorld(t, c.agent)
		w.Shared = c.shared
		told := w.rests()
		_, err := w.Step(t.Context(), w.start(), StepOptions{})
		require.Equal(t, c.machine, protocol.OfMachine(err), "%v", err)
		require.Equal(t, c.want, told())
	}
}
