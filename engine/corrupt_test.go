//go:build unix

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

func (w *world) record(h protocol.Hash) castest.Record {
	return castest.FindRecord(w.t, w.Reader.Dirs.Store, h)
}

// damage flips a bit in the content of a node.
func (w *world) damage(h protocol.Hash) { w.record(h).Flip() }

func TestDamageIsNamedAndStaysLocal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	ways := map[string]func(w *world, h protocol.Hash){
		"bit flip": (*world).damage,
		"torn":     func(w *world, h protocol.Hash) { w.record(h).Tear() },
		"lost":     func(w *world, h protocol.Hash) { w.record(h).Lose() },
	}
	nodes := map[string]func(w *world, head protocol.Hash) protocol.Hash{
		"head":   func(_ *world, head protocol.Hash) protocol.Hash { return head },
		"output": func(w *world, head protocol.Hash) protocol.Hash { return w.readStep(head).Output },
		"start":  func(w *world, head protocol.Hash) protocol.Hash { return w.readStep(head).Start },
	}
	for way, damage := range ways {
		for node, find := range nodes {
			t.Run(node+" "+way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "again")
				id := w.start()
				head := w.mustStep(id, StepOptions{}).Head
				w.plays("unclear")
				other, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "another task", Cwd: w.dir}, StartOptions{})
				require.NoError(t, err)
				w.mustStep(other, StepOptions{})

				bad := find(w, head)
				damage(w, bad)
				out := w.show(id)
				require.Equal(t, protocol.StatusCorrupt, out.Status)
				require.Contains(t, out.Error.Message, string(bad))
				require.Equal(t, protocol.CodeCorrupt, out.Error.Code)
				_, err = w.Step(ctx, id, StepOptions{})
				requireCode(t, err, protocol.CodeCorrupt, string(bad))
				_, err = w.Resume(ctx, id, "", StepOptions{})
				requireCode(t, err, protocol.CodeCorrupt, string(bad))
				_, err = w.Fork(ctx, head, ForkOptions{})
				require.Error(t, err)
				require.Equal(t, head, w.head(id))

				require.Equal(t, protocol.StatusSuspended, w.show(other).Status, "other threads go on")
				w.plays("unclear,ready")
				w.mustResume(other, "")
			})
		}
	}
}

func TestDamagedWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.damage(w.workflow)
	out := w.show(id)
	require.Equal(t, protocol.StatusCorrupt, out.Status)
	require.Equal(t, w.workflow, out.Workflow, "what can be read is said")
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeCorrupt, string(w.workflow))
}

// If the result of an interrupted step is damaged, that is reported once, and the step is run again.
func TestDamagedResultOfAnInterruptedStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!gate:ready@go")
	w.open("go")
	_, err := w.Reader.Wait(context.Background(), id)
	require.NoError(t, err)
	result, finished := w.Reader.RunDir(id).Finished()
	require.True(t, finished)
	step := w.readStep(result.StepHash)
	w.damage(step.Output)

	_, err = w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeCorrupt, string(step.Output))
	w.record(step.Output).Lose()
	require.False(t, w.mustStep(id, StepOptions{}).Adopted)
}

func TestOverviewSkipsDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "unclear")
	good, bad, done := w.start(), "", ""
	bad, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "bad", Cwd: w.dir}, StartOptions{})
	require.NoError(t, err)
	done, err = w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "done", Cwd: w.dir}, StartOptions{})
	require.NoError(t, err)
	w.mustStep(good, StepOptions{})
	w.plays("ready,done")
	w.mustStep(done, StepOptions{})
	w.mustStep(done, StepOptions{})
	w.damage(w.head(bad))

	o := w.Reader.Overview()
	item := listed(o, status.Listed{Thread: good, Head: w.head(good)})
	require.Equal(t, protocol.StatusSuspended, item.Status)
	require.Equal(t, "suspended [suspended]", item.StatusDisplay)
	require.Equal(t, "test", string(item.WorkflowName))
	require.NotNil(t, item.StartedAt)
	item = listed(o, status.Listed{Thread: bad, Head: w.head(bad)})
	require.Equal(t, protocol.StatusCorrupt, item.Status)
	require.Contains(t, item.Error, string(w.head(bad)))
	item = listed(o, status.Listed{Ended: &heads.Ended{Thread: done, Workflow: w.workflow, Head: w.head(done), Status: protocol.StatusCompleted, CompletedAt: 7}})
	require.Equal(t, protocol.StatusCompleted, item.Status)
	require.EqualValues(t, 7, *item.CompletedAt)
}

// An overview reads each workflow once.
func TestOverviewReadsFewNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.lengthen(id, 50)
	counting := &countingStore{Store: w.Reader.Store}
	e := *w.Engine
	e.Reader.Store = counting
	o := e.Reader.Overview()
	listed(o, status.Listed{Thread: id, Head: w.head(id)})
	require.EqualValues(t, 4, counting.gets.Load(), "head, start, workflow, output")
	const looks, readers = 20, 8
	for range looks {
		listed(o, status.Listed{Thread: id, Head: w.head(id)})
	}
	require.LessOrEqual(t, counting.gets.Load(), int64(4+3*looks+readers))
}

// If an agent damages the node that its step follows, the head doesn't move, but the agent's work isn't lost.
func TestHeadDamagedWhileItsAgentWorks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!gate:ready@go")
	id := w.start()
	head := w.head(id)
	ended := w.inFlight(ctx, id)
	lost := w.record(head)
	whole := lost.Body()
	lost.Lose()
	w.open("go")
	requireCode(t, <-ended, protocol.CodeCorrupt, string(head))
	require.Equal(t, head, w.head(id))

	castest.Forge(t, w.Reader.Dirs.Store, record.Node, head.Number(), whole)
	require.True(t, w.mustStep(id, StepOptions{}).Adopted)
}
