//go:build unix

package engine

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
)

var toTheEnd = Work{Steps: UntilEnd}

func (w *world) background(id, script string, work Work) (protocol.StepOutput, error) {
	w.t.Helper()
	startsItself(w.Engine, script)
	return w.Background(context.Background(), id, work)
}

func (w *world) wait(id string) protocol.StepOutput {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := w.Reader.Wait(ctx, id)
	require.NoError(w.t, err)
	return out
}

func TestAWorkerHasTheThreadUntilTheEnd(t *testing.T) {
	t.Parallel()
	const script = "!gate:ready@go,!gate:done@go2"
	w := newWorld(t, script)
	id := w.start()
	out, err := w.background(id, script, toTheEnd)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusRunning, out.Status)
	require.Equal(t, "planner", string(out.CurrentRole))
	require.True(t, *out.Background)

	_, err = w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeLocked)
	require.NotContains(t, e.Message, fmt.Sprintf("pid %d ", os.Getpid()), "the worker has it, not who started it")
	_, err = w.background(id, script, toTheEnd)
	requireCode(t, err, protocol.CodeLocked)

	w.open("go")
	w.eventually("the second step runs", func() bool {
		s := w.show(id)
		return s.Status == protocol.StatusRunning && string(s.CurrentRole) == "worker"
	})
	w.open("go2")
	require.True(t, w.wait(id).Done)
	require.Equal(t, 2, w.agentRuns())
}

// A waiter doesn't get the lock between two steps of a loop, and Wait doesn't return there.
func TestWaitOutlastsALoop(t *testing.T) {
	t.Parallel()
	const script = "again,again,again,again,again,ready,done"
	w := newWorld(t, script)
	id := w.start()
	_, err := w.background(id, script, toTheEnd)
	require.NoError(t, err)
	stop := make(chan struct{})
	idle := make(chan bool, 1)
	go func() {
		seen := false
		for {
			select {
			case <-stop:
				idle <- seen
				return
			default:
			}
			if out, err := w.Reader.Show(context.Background(), id); err == nil && out.Status == protocol.StatusIdle && !out.Pending {
				seen = true
			}
		}
	}()
	out := w.wait(id)
	close(stop)
	require.False(t, <-idle, "between two steps it runs")
	require.True(t, out.Done)
	require.Equal(t, 7, w.agentRuns())
}

func TestWorkerReportsStartError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	id := w.start()
	_, err := w.background(id, "ready", Work{Steps: 1, StepOptions: StepOptions{Agent: "no-such-agent"}})
	e := requireCode(t, err, protocol.CodeNotFound)
	require.NotEmpty(t, hints.All("", e))

	w.Reader.Env.Exe = "/bin/true"
	_, err = w.Background(context.Background(), id, toTheEnd)
	requireCode(t, err, protocol.CodeFailed)
	w.Reader.Env.Exe = ""
	_, err = w.Background(context.Background(), id, toTheEnd)
	requireCode(t, err, protocol.CodeFailed)
	require.True(t, w.mustDo(id, "ready,done").Done, "the lock is free again")
}

// mustDo steps a thread to the end in this process.
func (w *world) mustDo(id, script string) protocol.StepOutput {
	w.t.Helper()
	w.plays(script)
	outs, err := w.Do(context.Background(), id, toTheEnd)
	require.NoError(w.t, err)
	return outs[len(outs)-1]
}

func TestOthersCannotBeWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	id := w.start()
	f, err := os.CreateTemp(t.TempDir(), "no-lock")
	require.NoError(t, err)
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd())) // the worker closes it
	require.NoError(t, err)
	_, err = w.take(context.Background(), id, mustLock(t, w.lockFile(id)))
	require.NoError(t, err)
	err = w.Worker(context.Background(), id, uintptr(fd), f)
	requireCode(t, err, protocol.CodeUsage)
}

func TestResumeAndSuspendInTheBackground(t *testing.T) {
	t.Parallel()
	const script = "unclear,ready,done"
	w := newWorld(t, script)
	id := w.start()
	_, err := w.background(id, script, toTheEnd)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusSuspended, w.wait(id).Status)

	out, err := w.background(id, script, toTheEnd)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusSuspended, out.Status, "there is nothing to do, and nothing runs")
	require.Nil(t, out.Background)

	_, err = w.background(id, script, Work{Do: DoResume, Steps: UntilEnd, Prompt: "blue"})
	require.NoError(t, err)
	require.True(t, w.wait(id).Done)
	require.Contains(t, w.readStep(*w.readStep(w.head(id)).Prev).EdgePrompt, "blue")

	// The worker removes the lock file that it inherited.
	_, err = w.background(id, "ready,done,done,ready,done", Work{Do: DoResume, Steps: UntilEnd, Prompt: "more"})
	require.NoError(t, err)
	w.wait(id)
}

func TestStopEndsAWorkerForGood(t *testing.T) {
	t.Parallel()
	const script = "!gate:again@never"
	w := newWorld(t, script)
	id := w.start()
	_, err := w.background(id, script, toTheEnd)
	require.NoError(t, err)
	stopped, err := w.Stop(context.Background(), id)
	require.NoError(t, err)
	require.True(t, stopped)
	require.Equal(t, protocol.StatusIdle, w.wait(id).Status)
	require.True(t, w.mustDo(id, "ready,done").Done)
}

// Kills the worker before each of its changes to the disk.
func TestKillAWorkerBeforeEveryChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	clean := w.Reader.Env.Environ
	for n, killed := 1, true; killed; n++ {
		id := w.start()
		before := w.agentRuns()
		w.Reader.Env.Environ = append(clean[:len(clean):len(clean)], fmt.Sprintf("%s=%d", killAt, n))
		_, _ = w.background(id, "ready,done", toTheEnd) // it may be dead before it starts
		w.Reader.Env.Environ = clean
		killed = !w.wait(id).Done
		w.finish(id, before, 2)
		require.Less(t, n, 200)
	}
}

// Kills the process that starts a worker before each of its changes. Either the worker continues alone or
// there is none.
func TestKillTheParentOfAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	for n, killed := 1, true; killed; n++ {
		id := w.start()
		before := w.agentRuns()
		killed = w.killedAtChange(n, w.engineProcess(id, "ready,done", "background"))
		w.wait(id)
		w.finish(id, before, 2)
		require.Less(t, n, 200)
	}
}

func TestKillTheParentOfAWorkerAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	for i := range 30 {
		id := w.start()
		before := w.agentRuns()
		cmd := w.engineProcess(id, "ready,done", "background")
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(2*i)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		w.finish(id, before, 2)
	}
}
