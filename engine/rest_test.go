//go:build unix

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// rests collects the AtRest events.
func (w *world) rests() func() []string {
	var notices []string
	w.AtRest, w.Events = true, func(ev Event) {
		if ev.Kind == AtRest {
			notices = append(notices, ev.Notice+" "+string(ev.Output.Status))
		}
	}
	return func() []string {
		now := notices
		notices = nil
		return now
	}
}

// There is an AtRest event per question and at the end; not for an invalid answer, and not if a step finds
// nothing changed.
func TestRestedAtAQuestion(t *testing.T) {
	t.Parallel()
	w, id := gate(t)
	notices := w.rests()
	w.mustStep(id, StepOptions{})
	require.Equal(t, []string{"waiting suspended"}, notices())
	_, err := w.answers(id, "no", "")
	require.NoError(t, err)
	require.Equal(t, []string{"waiting suspended"}, notices())
	_, err = w.answers(id, "perhaps", "")
	require.Error(t, err)
	w.mustStep(id, StepOptions{})
	require.Empty(t, notices())
	_, err = w.answers(id, "yes", "")
	require.NoError(t, err)
	require.Equal(t, []string{"completed completed"}, notices())
}

// There is an AtRest event for each failed try, and when a limit of the run is reached.
func TestRestedInVain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!exit:3")
	notices := w.rests()
	id := w.start()
	for range 2 {
		_, err := w.Step(ctx, id, StepOptions{})
		require.Error(t, err)
		require.Equal(t, []string{"error error"}, notices())
	}
	w = newBoundedWorld(t, "!cost:again/0.4/10", protocol.Limits{MaxCostUSD: 1})
	notices = w.rests()
	id = w.start()
	w.mustStep(id, StepOptions{})
	require.Empty(t, notices(), "it could go on")
	w.untilEnd(id)
	require.Equal(t, []string{"limit suspended"}, notices())
	w.untilEnd(id)
	require.Empty(t, notices())
}

// If other machines also step a thread, an error of one machine doesn't end the thread; an error of the
// thread does.
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
		notices := w.rests()
		_, err := w.Step(t.Context(), w.start(), StepOptions{})
		require.Equal(t, c.machine, protocol.OfMachine(err), "%v", err)
		require.Equal(t, c.want, notices())
	}
}
