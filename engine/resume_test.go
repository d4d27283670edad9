//go:build unix

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/prosetest"
)

func (w *world) mustResume(id, answer string) protocol.StepOutput {
	w.t.Helper()
	out, err := w.Resume(context.Background(), id, answer, StepOptions{})
	require.NoError(w.t, err)
	return out
}

func TestResumeSuspended(t *testing.T) {
	t.Parallel()
	const graph, reason = "What is the unclear thing?", "I need a person"
	tests := map[string]struct{ status, message, told string }{
		"by the graph": {"unclear", graph, graph},
		"by the role":  {"$SUSPEND", reason, promptquote.Text(promptquote.Reason, reason)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.status+",ready,done")
			id := w.start()
			out := w.mustStep(id, StepOptions{})
			require.Equal(t, protocol.StatusSuspended, out.Status)
			require.Equal(t, "planner", string(out.SuspendedRole))
			require.Equal(t, test.message, string(out.SuspendMessage))
			require.Empty(t, out.CurrentRole)

			again := w.mustStep(id, StepOptions{})
			require.Equal(t, protocol.StatusSuspended, again.Status)
			require.Empty(t, again.StepHash, "stepping a suspended thread does nothing")
			require.Equal(t, again, w.show(id))

			resumed := w.mustResume(id, "It is blue.")
			require.Equal(t, protocol.StatusIdle, resumed.Status)
			require.Equal(t, "planner", string(resumed.Role))
			s := w.readStep(resumed.Head)
			require.Equal(t, out.Head, *s.Prev)
			require.Equal(t, test.told+"\n\nIt is blue.", s.EdgePrompt)
			require.True(t, w.mustStep(id, StepOptions{}).Done)
		})
	}
}

func TestResumeSeveralTimesWithoutWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear")
	id := w.start()
	w.mustStep(id, StepOptions{})
	for range 3 {
		out := w.mustResume(id, "")
		require.Equal(t, protocol.StatusSuspended, out.Status)
		require.Equal(t, "What is the unclear thing?", w.readStep(out.Head).EdgePrompt)
	}
}

func TestFailedResumeStaysSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear,!exit:3")
	id := w.start()
	head := w.mustStep(id, StepOptions{}).Head
	out, err := w.Resume(context.Background(), id, "x", StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, protocol.StatusSuspended, out.Status)
	require.Contains(t, out.Error.Message, "exit status 3")
	require.Contains(t, out.Error.Hint, "uwf thread resume")
	require.Equal(t, head, w.head(id))
	w.plays("unclear,ready")
	require.Equal(t, "worker", string(w.mustResume(id, "x").CurrentRole))
}

func TestResumeCompleted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready,done,!exit:3")
	id := w.start()
	w.mustStep(id, StepOptions{})
	ended := w.mustStep(id, StepOptions{})
	require.True(t, ended.Done)

	out, err := w.Resume(ctx, id, "More, please.", StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, protocol.StatusCompleted, out.Status, "a failed resume leaves the thread completed")
	_, err = w.Reader.Heads.Head(ctx, id)
	require.ErrorIs(t, err, heads.ErrNoThread)

	w.plays("ready,done,ready,done")
	out = w.mustResume(id, "More, please.")
	require.Equal(t, protocol.StatusIdle, out.Status)
	s := w.readStep(out.Head)
	require.Equal(t, ended.Head, *s.Prev)
	require.Equal(t, "planner", s.Role)
	require.Contains(t, s.EdgePrompt, "More, please.")
	require.Equal(t, 2, s.LimitBase, "a new run gets a new allotment")
	require.True(t, w.mustStep(id, StepOptions{}).Done)
	require.Equal(t, protocol.StatusCompleted, w.show(id).Status)
}

func TestWhatCannotBeResumed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready,lost")
	id := w.start()
	_, err := w.Resume(ctx, id, "x", StepOptions{})
	e := requireCode(t, err, protocol.CodeFailed)
	require.Contains(t, hints.All("", e), "uwf thread step "+id)

	w.mustStep(id, StepOptions{})
	w.mustStep(id, StepOptions{})
	_, err = w.Resume(ctx, id, "x", StepOptions{})
	requireCode(t, err, protocol.CodeInvalid, `"lost"`)

	require.NoError(t, w.Kill(ctx, id))
	_, err = w.Resume(ctx, id, "x", StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
	_, err = w.Step(ctx, id, StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
	require.Len(t, w.runs(), 2)
}

func TestLimitOfSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	w.workflow = w.put(testWorkflow(&protocol.Limits{MaxSteps: 2}))
	id := w.start()
	w.mustStep(id, StepOptions{})
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, out.Status)
	prosetest.Text(t, string(out.SuspendMessage))
	require.Equal(t, "planner", string(out.SuspendedRole))

	out = w.mustResume(id, "")
	require.Equal(t, protocol.StatusIdle, out.Status, "resuming grants as many again")
	require.Equal(t, 2, w.readStep(out.Head).LimitBase)
	out = w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, out.Status)
	require.Equal(t, 2, w.readStep(out.Head).LimitBase)
}

func TestLimitOfVisits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again,again,again,ready,retry,again")
	w.workflow = w.put(testWorkflow(&protocol.Limits{MaxVisitsPerRole: 2}))
	id := w.start()
	w.mustStep(id, StepOptions{})
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, out.Status)
	require.Contains(t, string(out.SuspendMessage), "maxVisitsPerRole")

	require.Equal(t, protocol.StatusIdle, w.mustResume(id, "").Status)
	out = w.mustStep(id, StepOptions{})
	require.Equal(t, "worker", string(out.CurrentRole), "visits before the limit was lifted do not count")
	out = w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, out.Status, "the planner has had two turns since")
	require.Equal(t, map[string]int{"planner": 4, "worker": 1}, w.readStep(out.Head).Visits)
}

func TestLimitOfTheConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	w.config.Limits = &protocol.LimitsConfig{MaxSteps: 1}
	id := w.start()
	require.Equal(t, protocol.StatusSuspended, w.mustStep(id, StepOptions{}).Status)
	require.Equal(t, protocol.StatusSuspended, w.show(id).Status)

	w.config.Limits = nil
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	w.lengthen(id, protocol.DefaultMaxSteps-1)
	require.Equal(t, protocol.StatusSuspended, w.show(id).Status, "without any limit the default holds")
}
