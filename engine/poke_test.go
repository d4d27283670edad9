//go:build unix

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

func mustLock(t *testing.T, path string) *durable.Held {
	t.Helper()
	held, err := durable.TryLock(path)
	require.NoError(t, err)
	return held
}

func TestPokeReplacesTheLastStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again,unclear")
	id := w.start()
	first := w.mustStep(id, StepOptions{})
	old := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, old.Status)

	w.plays("again,ready")
	out, err := w.Poke(context.Background(), id, "be more exact", StepOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, out.Status)
	require.Equal(t, "worker", string(out.CurrentRole), "what is next follows from the new output")
	was, is := w.readStep(old.Head), w.readStep(out.Head)
	require.NotEqual(t, old.Head, out.Head)
	require.Equal(t, first.Head, *is.Prev)
	require.Equal(t, "be more exact", is.EdgePrompt)
	require.Equal(t, was.Role, is.Role)
	require.Equal(t, was.Index, is.Index)
	require.Equal(t, was.Visits, is.Visits)

	// The first step can be replaced.
	id = w.start()
	w.mustStep(id, StepOptions{})
	out, err = w.Poke(context.Background(), id, "once more", StepOptions{})
	require.NoError(t, err)
	require.Nil(t, w.readStep(out.Head).Prev)
}

func TestWhatCannotBePoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	ctx := context.Background()
	id := w.start()
	_, err := w.Poke(ctx, id, "x", StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
	require.NoError(t, w.Kill(ctx, id))
	_, err = w.Poke(ctx, id, "x", StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
	_, err = w.Poke(ctx, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "x", StepOptions{})
	requireCode(t, err, protocol.CodeNotFound)

	id = w.start()
	old := w.mustStep(id, StepOptions{})
	w.plays("!exit:3")
	_, err = w.Poke(ctx, id, "x", StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, old.Head, w.head(id), "a poke that fails leaves the thread where it was")
	w.plays("ready,done")
	require.Equal(t, "worker", string(w.mustStep(id, StepOptions{}).Role), "and it goes on from there")
}

// If the engine of a poke is killed, the poke takes effect once its agent has finished; a plain step adopts
// the result. If the agent failed, the old step stays.
func TestAPokeThatWasKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again,ready,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	old := w.mustStep(id, StepOptions{})
	w.killedAt(id, "again,!gate:again@go", "poke", "be exact")
	w.open("go")
	require.True(t, w.wait(id).Pending)
	out := w.mustStep(id, StepOptions{})
	require.True(t, out.Adopted)
	require.Equal(t, *w.readStep(old.Head).Prev, *w.readStep(out.Head).Prev)
	require.Equal(t, "be exact", w.readStep(out.Head).EdgePrompt)
	require.Equal(t, 3, w.agentRuns())

	require.Equal(t, protocol.StatusIdle, out.Status)
	head := w.head(id)
	w.plays("again,again,ready,done")
	out = w.mustStep(id, StepOptions{})
	require.Equal(t, head, *w.readStep(out.Head).Prev, "what follows is a step like any other")
}

func TestKillBeforeEveryChangeOfAPoke(t *testing.T) {
	t.Parallel()
	const script = "ready,done"
	w := newWorld(t, script)
	for n, killed := 1, true; killed; n++ {
		id := w.start()
		before := w.agentRuns()
		old := w.mustStep(id, StepOptions{}).Head
		killed = w.killedAtChange(n, w.engineProcess(id, script, "poke", "be exact"))
		shown := w.wait(id)
		poked := shown.Pending || shown.Head != old
		steps := 2
		if poked {
			steps++ // one more agent run, but not one more step
		}
		w.eventually("the thread reaches its end", func() bool {
			out, err := w.Step(context.Background(), id, StepOptions{})
			return err == nil && out.Done
		})
		require.Equal(t, before+steps, w.agentRuns(), "no agent ran twice")
		last := w.readStep(w.head(id))
		require.Equal(t, 1, last.Index)
		require.Equal(t, poked, *last.Prev != old)
		require.Less(t, n, 200)
	}
}
