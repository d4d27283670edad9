//go:build unix

package engine

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/locker/lockertest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

type (
	anyHeads   interface{ heads.Heads }
	otherHeads struct{ anyHeads }
)

// The engine works with other heads and locks than files: a thread runs, waits for a person, ends and is
// forked, with real agents.
func TestOnHeadsAndLocksOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear,ready,done")
	locks := new(lockertest.Memory)
	others := fileheads.Open(t.TempDir(), durable.OS())
	w.Reader.Heads, w.Reader.Locks = otherHeads{others}, locks
	ran := 0
	w.Run = func(ctx context.Context, inv agentproc.Invocation) (agentproc.Outcome, error) {
		ran++
		return agentproc.Run(ctx, inv)
	}
	ctx := t.Context()
	id := w.start()
	require.Equal(t, protocol.StatusSuspended, w.mustStep(id, StepOptions{}).Status)
	outs, err := w.Do(ctx, id, Work{Do: DoResume, Prompt: "like this", Steps: UntilEnd})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCompleted, outs[len(outs)-1].Status)
	require.Equal(t, 3, ran, "every agent went through the engine's runner")
	require.False(t, locks.Held(ctx, id))

	fork, err := w.Fork(ctx, w.readStep(w.show(id).Head).Start, ForkOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, w.show(fork).Status)

	held, err := locks.Lock(ctx, fork)
	require.NoError(t, err)
	require.NoError(t, held.Note(locker.Holder{Pid: os.Getpid()}))
	_, err = w.Step(ctx, fork, StepOptions{})
	requireCode(t, err, protocol.CodeLocked)
	require.NoError(t, held.Unlock())

	_, err = w.Background(ctx, fork, Work{})
	requireCode(t, err, protocol.CodeFailed)
	for _, name := range []string{"threads.yaml", "history.jsonl", "facts.jsonl", "locks"} {
		require.NoFileExists(t, w.Reader.Dirs.Home+"/"+name)
	}
}
