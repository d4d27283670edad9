//go:build unix

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// engineProcess returns a command that works on a thread in another process; see fakeEngine.
func (w *world) engineProcess(id, script string, action ...string) *exec.Cmd {
	w.t.Helper()
	exe, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.Command(exe, append([]string{"fake-engine", w.Reader.Dirs.Home, id, script}, action...)...)
	cmd.Env = append(os.Environ(), noRaceSleep)
	cmd.Stderr = os.Stderr
	return cmd
}

// killedAt starts an engine process whose agent waits at a gate, and kills the engine there. The agent
// survives.
func (w *world) killedAt(id, script string, action ...string) {
	w.t.Helper()
	before := len(w.runs())
	cmd := w.engineProcess(id, script, action...)
	require.NoError(w.t, cmd.Start())
	w.eventually("the agent is at its gate", func() bool {
		runs := w.runs()
		return len(runs) > before && strings.Contains(runs[len(runs)-1], "at gate") && w.Reader.RunDir(id).Read().Pid != 0
	})
	require.NoError(w.t, cmd.Process.Kill())
	_ = cmd.Wait()
	w.plays(script)
}

// agentRuns returns how often agents were run.
func (w *world) agentRuns() int {
	n := 0
	for _, line := range w.runs() {
		if !strings.HasPrefix(line, "at gate") && !strings.HasPrefix(line, "budget") && !strings.HasPrefix(line, "visit") && !strings.HasPrefix(line, "child") {
			n++
		}
	}
	return n
}

func TestFinishedWorkOfAKilledEngineIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!gate:ready@go,done")

	out, err := w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeLocked, id)
	prosetest.Text(t, hints.All("", e))
	require.Equal(t, protocol.StatusRunning, out.Status)
	require.Equal(t, "planner", string(w.show(id).CurrentRole))
	_, err = w.Step(context.Background(), id, StepOptions{Fresh: true})
	requireCode(t, err, protocol.CodeLocked)

	w.open("go")
	shown, err := w.Reader.Wait(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, shown.Status)
	require.True(t, shown.Pending, "what waits to be adopted is visible")

	p := &recorder{}
	w.Events, w.Turns = p.add, true
	out = w.mustStep(id, StepOptions{})
	require.True(t, out.Adopted)
	require.Equal(t, "planner", string(out.Role))
	require.Equal(t, "worker", string(out.CurrentRole))
	require.Equal(t, []string{"start 1 planner by fake adopted=true", "end idle <nil>"}, p.events)
	require.Equal(t, 1, w.agentRuns())
	require.True(t, w.mustStep(id, StepOptions{}).Done)
}

// A finished step is adopted, whatever agent is given now and however its name is spelled.
func TestFinishedWorkIsAdoptedByAnyAgent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(w *world, o *StepOptions)
		adopted bool
	}{
		"--discard-result": {func(_ *world, o *StepOptions) { o.Fresh = true }, false},
		"another agent":    {func(w *world, o *StepOptions) { w.plays("again") }, true},
		"another --agent": {func(w *world, o *StepOptions) {
			o.Agent = w.config.Agents["fake"].Command + " fake-agent ready"
		}, true},
		"no agent at all": {func(w *world, o *StepOptions) { w.config = protocol.Config{} }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			id := w.start()
			w.killedAt(id, "!gate:ready@go")
			w.open("go")
			_, err := w.Reader.Wait(context.Background(), id)
			require.NoError(t, err)
			var o StepOptions
			test.change(w, &o)
			require.Equal(t, test.adopted, w.mustStep(id, o).Adopted)
			runs := 2
			if test.adopted {
				runs = 1
			}
			require.Equal(t, runs, w.agentRuns())
		})
	}
}

func TestInterruptedWorkThatCameToNothingIsRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!hang:")
	require.NoError(t, syscall.Kill(w.Reader.RunDir(id).Read().Pid, syscall.SIGKILL))
	_, err := w.Reader.Wait(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	w.plays("ready")
	require.False(t, w.mustStep(id, StepOptions{}).Adopted)
}

// A wrong result of an interrupted step isn't adopted. It is reported once.
func TestInterruptedLieIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!gate:ready@go")
	dir := w.Reader.RunDir(id)
	require.NoError(t, syscall.Kill(dir.Read().Pid, syscall.SIGKILL))
	w.eventually("the agent is gone", func() bool { return !dir.Alive(dir.Read()) })
	require.NoError(t, os.WriteFile(dir.File(runfiles.StdoutFile), []byte(w.workflow+"\n"), 0o600))
	require.True(t, w.show(id).Pending)

	w.open("go")
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent, dir.File(runfiles.StdoutFile))
	require.Equal(t, 1, w.agentRuns())
	out := w.mustStep(id, StepOptions{})
	require.False(t, out.Adopted)
	require.Equal(t, "worker", string(out.CurrentRole))
	require.Equal(t, 2, w.agentRuns())
}

func TestInterruptedResumeIsAdopted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		steps  int
		adopt  func(w *world, id string) (protocol.StepOutput, error)
	}{
		"by a step, suspended": {"unclear,!gate:ready@go", 1, func(w *world, id string) (protocol.StepOutput, error) {
			return w.Step(context.Background(), id, StepOptions{})
		}},
		"by the same resume, suspended": {"unclear,!gate:ready@go", 1, func(w *world, id string) (protocol.StepOutput, error) {
			return w.Resume(context.Background(), id, "blue", StepOptions{})
		}},
		"by a step, completed": {"ready,done,!gate:ready@go", 2, func(w *world, id string) (protocol.StepOutput, error) {
			return w.Step(context.Background(), id, StepOptions{})
		}},
		"by the same resume, completed": {"ready,done,!gate:ready@go", 2, func(w *world, id string) (protocol.StepOutput, error) {
			return w.Resume(context.Background(), id, "blue", StepOptions{})
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.script)
			id := w.start()
			for range test.steps {
				w.mustStep(id, StepOptions{})
			}
			before := w.show(id).Status
			w.killedAt(id, test.script, "resume", "blue")
			require.Equal(t, protocol.StatusRunning, w.show(id).Status)
			w.open("go")
			shown, err := w.Reader.Wait(context.Background(), id)
			require.NoError(t, err)
			require.Equal(t, before, shown.Status)
			require.True(t, shown.Pending)
			out, err := test.adopt(w, id)
			require.NoError(t, err)
			require.True(t, out.Adopted)
			require.Equal(t, "worker", string(out.CurrentRole))
			require.Equal(t, test.steps+1, w.agentRuns())
			require.Equal(t, protocol.StatusIdle, w.show(id).Status)
		})
	}
}

// A different answer is a different prompt. The work done for the first answer isn't discarded without a
// flag.
func TestAnotherAnswerIsRunOnPurpose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear")
	id := w.start()
	w.mustStep(id, StepOptions{})
	w.killedAt(id, "unclear,!gate:ready@go", "resume", "blue")
	w.open("go")
	_, err := w.Reader.Wait(context.Background(), id)
	require.NoError(t, err)
	_, err = w.Resume(context.Background(), id, "green", StepOptions{})
	e := requireCode(t, err, protocol.CodeFailed)
	require.Contains(t, hints.All("", e)[0], "uwf thread step "+id)
	require.Contains(t, hints.All("", e)[1], "--discard-result")
	_, err = w.Poke(context.Background(), id, "otherwise", StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
	require.Equal(t, 2, w.agentRuns())
	out, err := w.Resume(context.Background(), id, "green", StepOptions{Fresh: true})
	require.NoError(t, err)
	require.False(t, out.Adopted)
	require.Contains(t, w.readStep(out.Head).EdgePrompt, "green")
}

// A thread that reached its end but wasn't archived, and one that was reopened but whose head wasn't moved.
func TestKilledBetweenTwoChangesOfTheIndex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	ended := w.mustStep(id, StepOptions{})
	line, err := w.Reader.Heads.Ended(ctx, id)
	require.NoError(t, err)

	require.NoError(t, w.Reader.Heads.Reopen(ctx, line, 1))
	require.Equal(t, protocol.StatusCompleted, w.show(id).Status)
	out := w.mustStep(id, StepOptions{})
	require.True(t, out.Done)
	require.Empty(t, out.StepHash)
	require.Equal(t, ended.Head, out.Head)

	line, err = w.Reader.Heads.Ended(ctx, id)
	require.NoError(t, err)
	require.NoError(t, w.Reader.Heads.Reopen(ctx, line, 2))
	w.plays("ready,done,ready")
	require.Equal(t, "worker", string(w.mustResume(id, "more").CurrentRole))
	require.Equal(t, 3, w.agentRuns())
}

// Kills the stepping process before each of its changes to the disk. Later steps continue, no finished work
// is lost or done twice, and the chain is complete.
func TestKillBeforeEveryChangeOfTheDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	for _, steps := range []int{0, 1} { // the second one archives
		killed := true
		for n := 1; killed; n++ {
			id := w.start()
			before := w.agentRuns()
			for range steps {
				w.mustStep(id, StepOptions{})
			}
			killed = w.killedAtChange(n, w.engineProcess(id, "ready,done"))
			w.finish(id, before, 2)
			require.Less(t, n, 200)
		}
	}
}

func TestKillBeforeEveryChangeOfAResume(t *testing.T) {
	t.Parallel()
	const script = "ready,done,ready,done"
	w := newWorld(t, script)
	killed := true
	for n := 1; killed; n++ {
		id := w.start()
		before := w.agentRuns()
		w.mustStep(id, StepOptions{})
		w.mustStep(id, StepOptions{})
		killed = w.killedAtChange(n, w.engineProcess(id, script, "resume", "more"))
		shown, err := w.Reader.Wait(context.Background(), id)
		require.NoError(t, err)
		if shown.Done && !shown.Pending { // killed before its agent started
			require.Equal(t, before+2, w.agentRuns())
			w.mustResume(id, "more")
		}
		w.finish(id, before, 4)
		require.Less(t, n, 200)
	}
}

// killedAtChange runs an engine that kills itself before its n-th change to the disk, and reports whether it
// got that far.
func (w *world) killedAtChange(n int, cmd *exec.Cmd) bool {
	w.t.Helper()
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", killAt, n))
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		require.Equal(w.t, -1, exit.ExitCode(), "it was killed, it did not fail")
		return true
	}
	require.NoError(w.t, err)
	return false
}

// Kills the engine at random times.
func TestKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	const kills = 40
	for i := range kills {
		id := w.start()
		before := w.agentRuns()
		cmd := w.engineProcess(id, "ready,done")
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(i)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		w.finish(id, before, 2)
	}
}

// finish steps a thread to its end and checks that every step was run once.
func (w *world) finish(id string, before, steps int) {
	w.t.Helper()
	w.eventually("the thread reaches its end", func() bool {
		out, err := w.Step(context.Background(), id, StepOptions{})
		if err != nil && !out.Done {
			require.ErrorIs(w.t, err, &protocol.Error{Code: protocol.CodeLocked})
		}
		return out.Done
	})
	last := w.readStep(w.head(id))
	require.Equal(w.t, steps-1, last.Index)
	require.Equal(w.t, "worker", last.Role)
	require.Equal(w.t, "planner", w.readStep(*last.Prev).Role)
	require.Equal(w.t, before+steps, w.agentRuns(), "no agent ran twice")
}

func TestTwoStepsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!gate:ready@go,done")
	id := w.start()
	const n = 8
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := w.Step(context.Background(), id, StepOptions{})
			errs <- err
		}()
	}
	for range n - 1 {
		e := requireCode(t, <-errs, protocol.CodeLocked)
		require.Contains(t, hints.All("", e), "to stop it: uwf thread stop "+id)
	}
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeLocked, strconv.Itoa(os.Getpid()))
	w.open("go")
	require.NoError(t, <-errs)
	require.Equal(t, 1, w.agentRuns())
}

func TestManyStartsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	var wg sync.WaitGroup
	ids := make([]string, 50)
	for i := range ids {
		wg.Add(1)
		go func() {
			defer wg.Done()
			id, err := w.Start(context.Background(), protocol.Start{Workflow: w.workflow, Prompt: fmt.Sprint(i), Cwd: w.dir}, StartOptions{})
			if err == nil {
				ids[i] = id
			}
		}()
	}
	wg.Wait()
	seen := map[string]bool{}
	for h, err := range w.Reader.Heads.Heads(context.Background()) {
		require.NoError(t, err)
		seen[h.Thread] = true
	}
	require.Len(t, seen, 50)
	for _, id := range ids {
		require.True(t, seen[id])
	}
}
