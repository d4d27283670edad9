//go:build unix

package engine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/proc"
)

// inFlight steps a thread in the background until its agent waits at its gate.
func (w *world) inFlight(ctx context.Context, id string) chan error {
	w.t.Helper()
	before := len(w.runs())
	errs := make(chan error, 1)
	go func() {
		_, err := w.Step(ctx, id, StepOptions{})
		errs <- err
	}()
	w.eventually("the agent is at its gate", func() bool {
		runs := w.runs()
		return len(runs) > before && strings.Contains(runs[len(runs)-1], "at gate") && w.Reader.RunDir(id).Read().Pid != 0
	})
	return errs
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// children returns the logged processes that agents have started.
func (w *world) children() []int {
	w.t.Helper()
	var pids []int
	for _, line := range w.runs() {
		if pid, ok := strings.CutPrefix(line, "child "); ok {
			n, err := strconv.Atoi(pid)
			require.NoError(w.t, err)
			pids = append(pids, n)
		}
	}
	return pids
}

func TestSignalEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		signal os.Signal
		code   protocol.Code
	}{
		"interrupt": {os.Interrupt, protocol.CodeInterrupted},
		"terminate": {syscall.SIGTERM, protocol.CodeTerminated},
		"hang up":   {syscall.SIGHUP, protocol.CodeHangup},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "!hang:family")
			id := w.start()
			ctx, cancel := context.WithCancelCause(context.Background())
			errs := w.inFlight(ctx, id)
			pid := w.Reader.RunDir(id).Read().Pid
			require.Equal(t, protocol.StatusRunning, w.show(id).Status)
			cancel(&SignalError{Signal: test.signal})
			requireCode(t, <-errs, test.code)
			for _, p := range append(w.children(), pid) {
				w.eventually("the agent's family is gone", func() bool { return gone(p) })
			}
			require.Equal(t, protocol.StatusIdle, w.show(id).Status, "an interrupted step has not failed")
			w.plays("ready")
			require.Equal(t, "worker", string(w.mustStep(id, StepOptions{}).CurrentRole))
		})
	}
}

func TestWorkFinishedOnASignalIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!finish-when-told:ready")
	id := w.start()
	ctx, cancel := context.WithCancelCause(context.Background())
	errs := w.inFlight(ctx, id)
	cancel(&SignalError{Signal: os.Interrupt})
	e := requireCode(t, <-errs, protocol.CodeInterrupted)
	require.Contains(t, strings.Join(hints.All("", e), "\n"), "uwf thread step "+id)
	// Until exec, a program started by a parallel test holds the run's lock.
	w.eventually("the result waits", func() bool { return w.show(id).Pending })
	require.True(t, w.mustStep(id, StepOptions{}).Adopted)
	require.Equal(t, 1, w.agentRuns())
}

func TestStop(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{"agent that obeys": "!hang:", "agent that does not": "!hang:stubborn"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, agent)
			w.Grace = 200 * time.Millisecond
			id := w.start()
			errs := w.inFlight(context.Background(), id)
			pid := w.Reader.RunDir(id).Read().Pid
			stopped, err := w.Stop(context.Background(), id)
			require.NoError(t, err)
			require.True(t, stopped)
			requireCode(t, <-errs, protocol.CodeTerminated)
			require.True(t, gone(pid))
			require.Equal(t, protocol.StatusIdle, w.show(id).Status)
			w.plays("ready")
			require.False(t, w.mustStep(id, StepOptions{}).Adopted)
		})
	}
}

func TestStopKeepsFinishedWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!finish-when-told:ready")
	id := w.start()
	errs := w.inFlight(context.Background(), id)
	stopped, err := w.Stop(context.Background(), id)
	require.NoError(t, err)
	require.True(t, stopped)
	requireCode(t, <-errs, protocol.CodeTerminated)
	require.Equal(t, "worker", string(w.show(id).CurrentRole))
}

func TestStopWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!exit:3")
	id := w.start()
	stopped, err := w.Stop(ctx, id)
	require.NoError(t, err)
	require.False(t, stopped)
	_, err = w.Step(ctx, id, StepOptions{})
	require.Error(t, err)
	_, err = w.Stop(ctx, id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusError, w.show(id).Status, "stopping nothing changes nothing")
	require.NoError(t, w.Kill(ctx, id))
	_, err = w.Stop(ctx, id)
	requireCode(t, err, protocol.CodeFailed)
}

// The engine was killed; its agent survived, perhaps before its process id was recorded.
func TestStopAnOrphan(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"with its id": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			w.Grace = 200 * time.Millisecond
			id := w.start()
			w.killedAt(id, "!hang:stubborn")
			r := w.Reader.RunDir(id).Read()
			pid := r.Pid
			if forget {
				r.Pid, r.Status = 0, rundir.Starting
				require.NoError(t, w.Reader.RunDir(id).Write(r))
			}
			stopped, err := w.Stop(context.Background(), id)
			require.NoError(t, err)
			require.True(t, stopped)
			require.True(t, gone(pid))
			require.Equal(t, protocol.StatusIdle, w.show(id).Status)
			w.plays("ready")
			w.mustStep(id, StepOptions{})
		})
	}
}

// A process that an agent leaves behind blocks neither the thread nor the next step.
func TestDaemonsOfAnAgentBlockNothing(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]string{"in its group": "", "in a session of its own": "new-session"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "!daemon:"+session+",done")
			id := w.start()
			require.Equal(t, "worker", string(w.mustStep(id, StepOptions{}).CurrentRole))
			pids := w.children()
			require.Len(t, pids, 1)
			t.Cleanup(func() { _ = syscall.Kill(pids[0], syscall.SIGKILL) })
			if session == "" {
				w.eventually("it ends with its agent", func() bool { return gone(pids[0]) })
			}
			require.Equal(t, protocol.StatusIdle, w.show(id).Status)
			require.True(t, w.mustStep(id, StepOptions{}).Done)
		})
	}
}

// If the engine was killed as well, such a process looks like the agent: it can be stopped, and the agent's
// result is adopted.
func TestStopADaemonOfAFinishedAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.mustHold(id)
	stopped, err := w.Stop(context.Background(), id)
	require.NoError(t, err)
	require.True(t, stopped)
	require.True(t, w.mustStep(id, StepOptions{}).Adopted)
	require.Equal(t, 1, w.agentRuns())
}

// mustHold puts a thread into the state after its engine was killed, its agent finished, and left a process
// in its own session.
func (w *world) mustHold(id string) {
	w.t.Helper()
	script := "!daemon:new-session"
	w.plays(script)
	head := w.head(id)
	w.mustStep(id, StepOptions{})
	r := w.Reader.RunDir(id).Read()
	require.NoError(w.t, w.Reader.Heads.Move(context.Background(), id, w.head(id), head))
	r.Status, r.StepHash = rundir.Running, ""
	require.NoError(w.t, w.Reader.RunDir(id).Write(r))
	require.Equal(w.t, protocol.StatusRunning, w.show(id).Status)
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(w.t, err, protocol.CodeLocked)
}

// turningLocks reports the lock of a thread as held once, and lets another process have its turn before the next try.
type turningLocks struct {
	locker.Locker
	tries *int
	other func()
}

// Lock implements [locker.Locker].
func (l turningLocks) Lock(ctx context.Context, thread string) (locker.Lock, error) {
	if *l.tries++; *l.tries == 2 {
		l.other()
	}
	return l.Locker.Lock(ctx, thread)
}

// Of two processes that kill a running thread at the same time, only one reports that it did.
func TestKilledOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!hang:")
	id := w.start()
	errs := w.inFlight(t.Context(), id)
	second := *w.Engine
	second.Reader.Locks = turningLocks{w.Reader.Locker(), new(int), func() { require.NoError(t, w.Kill(t.Context(), id)) }}
	requireCode(t, second.Kill(t.Context(), id), protocol.CodeFailed)
	require.Error(t, <-errs)
	require.Equal(t, protocol.StatusCancelled, w.show(id).Status)
}

func TestKill(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tests := map[string]func(w *world, id string){
		"idle":      func(*world, string) {},
		"suspended": func(w *world, id string) { w.plays("unclear"); w.mustStep(id, StepOptions{}) },
		"failed": func(w *world, id string) {
			w.plays("!exit:1")
			_, err := w.Step(ctx, id, StepOptions{})
			require.Error(w.t, err)
		},
		"running": func(w *world, id string) { w.plays("!hang:"); w.inFlight(ctx, id) },
		"orphan":  func(w *world, id string) { w.killedAt(id, "!gate:ready@go") },
		"corrupt": func(w *world, id string) { w.damage(w.head(id)) },
		"pending": func(w *world, id string) {
			w.killedAt(id, "!gate:ready@go")
			w.open("go")
			_, err := w.Reader.Wait(ctx, id)
			require.NoError(w.t, err)
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ready")
			id := w.start()
			prepare(w, id)
			head := w.head(id)
			require.NoError(t, w.Kill(ctx, id))
			out := w.show(id)
			require.Equal(t, protocol.StatusCancelled, out.Status)
			require.True(t, out.Done)
			require.Empty(t, out.CurrentRole)
			require.Equal(t, name != "pending", head == out.Head, "what has finished is a step")
			_, err := w.Step(ctx, id, StepOptions{})
			requireCode(t, err, protocol.CodeFailed)
			requireCode(t, w.Kill(ctx, id), protocol.CodeFailed)
		})
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!gate:ready@go,done")
	id := w.start()
	out, err := w.Reader.Wait(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, out.Status, "a thread that does not run is not waited for")

	errs := w.inFlight(context.Background(), id)
	bored := errors.New("bored")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(bored)
	_, err = w.Reader.Wait(ctx, id)
	require.ErrorIs(t, err, bored)

	waited := make(chan protocol.StepOutput)
	go func() {
		out, _ := w.Reader.Wait(context.Background(), id)
		waited <- out
	}()
	w.open("go")
	require.NoError(t, <-errs)
	out = <-waited
	require.Equal(t, "worker", string(out.CurrentRole))
}

// bystander starts an unrelated process.
func bystander(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// After an agent has ended, its process id may be reused: that process isn't signaled, and doesn't make the
// thread look busy.
func TestProcessIDThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	if proc.Birth(os.Getpid()) == "" {
		return // this system cannot identify processes; see docs/guarantees.md
	}
	w := newWorld(t, "!gate:ready@go")
	id := w.start()
	errs := w.inFlight(context.Background(), id)
	r := w.Reader.RunDir(id).Read()
	real := r.Pid
	r.Pid = bystander(t)
	r.Birth = "1" + proc.Birth(r.Pid) // processes started within one tick of the clock have the same
	require.NoError(t, w.Reader.RunDir(id).Write(r))

	// The engine still holds the thread, as if it were suspended.
	brief, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := w.Stop(brief, id)
	require.Error(t, err)
	require.False(t, gone(r.Pid))
	require.False(t, gone(real))

	w.open("go")
	require.NoError(t, <-errs)
	r.Head, r.Status = w.head(id), rundir.Running // the engine was killed, and the agent has ended
	require.NoError(t, w.Reader.RunDir(id).Write(r))
	require.False(t, r.AgentLives())
	// Until exec, a process started by a parallel test holds our locks.
	w.eventually("it is idle", func() bool { return w.show(id).Status == protocol.StatusIdle })
	stopped, err := w.Stop(context.Background(), id)
	require.NoError(t, err)
	require.False(t, stopped)
	w.plays("done")
	w.mustStep(id, StepOptions{})
	require.False(t, gone(r.Pid))
}
