//go:build unix

package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// engineProcess steps a thread in a process of its own.
func (w *world) engineProcess(id, script string, resume ...string) *exec.Cmd {
	w.t.Helper()
	exe, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.Command(exe, append([]string{"fake-engine", w.Dirs.Home, id, script}, resume...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// killedAt starts an engine process whose agent waits at a gate, and kills the
// engine there. The agent lives on.
func (w *world) killedAt(id, script string, resume ...string) {
	w.t.Helper()
	before := len(w.runs())
	cmd := w.engineProcess(id, script, resume...)
	require.NoError(w.t, cmd.Start())
	w.eventually("the agent is at its gate", func() bool {
		runs := w.runs()
		return len(runs) > before && strings.Contains(runs[len(runs)-1], "at gate") && w.runDir(id).read().Pid != 0
	})
	require.NoError(w.t, cmd.Process.Kill())
	_ = cmd.Wait()
	w.plays(script)
}

// agentRuns counts the agents that were run.
func (w *world) agentRuns() int {
	n := 0
	for _, line := range w.runs() {
		if !strings.HasPrefix(line, "at gate") && !strings.HasPrefix(line, "child") {
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
	e := requireCode(t, err, protocol.CodeLocked, "still works on thread "+id)
	require.Contains(t, e.Hints, "uwf thread wait "+id)
	require.Equal(t, protocol.StatusRunning, out.Status)
	require.Equal(t, "planner", *w.show(id).CurrentRole)
	_, err = w.Step(context.Background(), id, StepOptions{Fresh: true})
	requireCode(t, err, protocol.CodeLocked, "still works")

	w.open("go")
	shown, err := w.Wait(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, shown.Status)
	require.True(t, shown.Pending, "what waits to be adopted is visible")

	p := &recorder{}
	w.Progress = p
	out = w.mustStep(id, StepOptions{})
	require.True(t, out.Adopted)
	require.Equal(t, "planner", *out.Role)
	require.Equal(t, "worker", *out.CurrentRole)
	require.Equal(t, []string{"start 1 planner by fake adopted=true", "end idle <nil>"}, p.events)
	require.Equal(t, 1, w.agentRuns())
	require.True(t, w.mustStep(id, StepOptions{}).Done)
}

func TestWhatDoesNotAdopt(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w *world, o *StepOptions){
		"--fresh":       func(_ *world, o *StepOptions) { o.Fresh = true },
		"another agent": func(w *world, o *StepOptions) { w.plays("again") },
		"another --agent": func(w *world, o *StepOptions) {
			o.Agent = w.config.Agents["fake"].Command + " fake-agent ready"
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			id := w.start()
			w.killedAt(id, "!gate:ready@go")
			w.open("go")
			_, err := w.Wait(context.Background(), id)
			require.NoError(t, err)
			var o StepOptions
			change(w, &o)
			require.False(t, w.mustStep(id, o).Adopted)
			require.Equal(t, 2, w.agentRuns())
		})
	}
}

func TestInterruptedWorkThatCameToNothingIsRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!hang:")
	require.NoError(t, syscall.Kill(w.runDir(id).read().Pid, syscall.SIGKILL))
	_, err := w.Wait(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	w.plays("ready")
	require.False(t, w.mustStep(id, StepOptions{}).Adopted)
}

// A result that is not what was asked for is not adopted either: the step is
// run again in the same command.
func TestInterruptedLieIsRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!hang:finished")
	r := w.runDir(id).read()
	require.NoError(t, syscall.Kill(r.Pid, syscall.SIGKILL))
	w.eventually("the agent is gone", func() bool { return !w.runDir(id).alive() })
	require.NoError(t, os.WriteFile(w.runDir(id).file("stdout"), []byte(w.workflow+"\n"), 0o600))
	require.True(t, w.show(id).Pending)
	w.config = fakeConfig("!hang:finished")
	w.config.Agents["fake"] = protocol.Agent{Command: r.Command[0], Args: r.Command[1:]}
	require.NoError(t, os.WriteFile(w.Dirs.Home+"/go", nil, 0o600))

	begin := w.agentRuns()
	w.Grace = 50 * time.Millisecond
	_, err := w.Step(context.Background(), id, StepOptions{Timeout: 300 * time.Millisecond})
	requireCode(t, err, protocol.CodeTimeout, "")
	require.Equal(t, begin+1, w.agentRuns())
	require.True(t, w.mustStep(id, StepOptions{}).Adopted, "what it had finished before the time was up is not lost")
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
			w.killedAt(id, test.script, "blue")
			require.Equal(t, protocol.StatusRunning, w.show(id).Status)
			w.open("go")
			shown, err := w.Wait(context.Background(), id)
			require.NoError(t, err)
			require.Equal(t, before, shown.Status)
			require.True(t, shown.Pending)
			out, err := test.adopt(w, id)
			require.NoError(t, err)
			require.True(t, out.Adopted)
			require.Equal(t, "worker", *out.CurrentRole)
			require.Equal(t, test.steps+1, w.agentRuns())
			require.Equal(t, protocol.StatusIdle, w.show(id).Status)
		})
	}
}

// Another answer than the interrupted one is another prompt.
func TestAnotherAnswerIsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear")
	id := w.start()
	w.mustStep(id, StepOptions{})
	w.killedAt(id, "unclear,!gate:ready@go", "blue")
	w.open("go")
	_, err := w.Wait(context.Background(), id)
	require.NoError(t, err)
	out := w.mustResume(id, "green")
	require.False(t, out.Adopted)
	require.Contains(t, w.readStep(out.Head).EdgePrompt, "green")
}

// A thread that reached its end but was not archived, and one that was reopened
// but whose head was not moved.
func TestKilledBetweenTwoChangesOfTheIndex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "ready,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	ended := w.mustStep(id, StepOptions{})
	line, err := w.Index.Ended(ctx, id)
	require.NoError(t, err)

	require.NoError(t, w.Index.Reopen(ctx, line, 1))
	require.Equal(t, protocol.StatusIdle, w.show(id).Status)
	out := w.mustStep(id, StepOptions{})
	require.True(t, out.Done)
	require.Nil(t, out.StepHash)
	require.Equal(t, ended.Head, out.Head)

	line, err = w.Index.Ended(ctx, id)
	require.NoError(t, err)
	require.NoError(t, w.Index.Reopen(ctx, line, 2))
	w.plays("ready,done,ready")
	require.Equal(t, "worker", *w.mustResume(id, "more").CurrentRole)
	require.Equal(t, 3, w.agentRuns())
}

// Kill the stepping process at any moment of a step: the next steps go on, no
// agent's finished work is lost or done twice, and the chain is whole.
func TestKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	kills := 60
	if testing.Short() {
		kills = 10
	}
	survived := 0
	for i := range kills {
		id := w.start()
		before := w.agentRuns()
		cmd := w.engineProcess(id, "ready,done")
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(i)*40*time.Millisecond/time.Duration(kills), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() == nil {
			survived++
		}
		timer.Stop()
		w.finish(id, before)
	}
	t.Logf("%d of %d kills came too late", survived, kills)
}

// finish steps a thread to its end and checks that every step was worked once.
func (w *world) finish(id string, before int) {
	w.t.Helper()
	ctx := context.Background()
	w.eventually("the thread reaches its end", func() bool {
		out, err := w.Step(ctx, id, StepOptions{})
		if err != nil && w.show(id).Done {
			return true
		}
		if err != nil {
			requireCode(w.t, err, protocol.CodeLocked, "")
		}
		return err == nil && out.Done
	})
	last := w.readStep(w.head(id))
	require.Equal(w.t, 1, last.Index)
	require.Equal(w.t, "worker", last.Role)
	require.Equal(w.t, "planner", w.readStep(*last.Prev).Role)
	require.Equal(w.t, before+2, w.agentRuns(), "no agent ran twice")
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
		e := requireCode(t, <-errs, protocol.CodeLocked, "")
		require.Contains(t, e.Hints, "uwf thread stop "+id)
	}
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeLocked, fmt.Sprintf("is being stepped by pid %d since 20", os.Getpid()))
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
			id, err := w.StartThread(context.Background(), w.workflow, fmt.Sprint(i), w.dir)
			if err == nil {
				ids[i] = id
			}
		}()
	}
	wg.Wait()
	seen := map[string]bool{}
	for h, err := range w.Index.Heads(context.Background()) {
		require.NoError(t, err)
		seen[h.Thread] = true
	}
	require.Len(t, seen, 50)
	for _, id := range ids {
		require.True(t, seen[id])
	}
}
