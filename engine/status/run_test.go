package status_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/locker/lockertest"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

type counting struct {
	cas.Store
	n int
}

func (c *counting) Get(ctx context.Context, h protocol.Hash) (cas.Node, error) {
	c.n++
	return c.Store.Get(ctx, h)
}

// The state of the last try depends on how it ended and whether its agent is alive.
func TestTries(t *testing.T) {
	t.Parallel()
	type world = statustest.World
	record := func(s rundir.Status) rundir.Record {
		return rundir.Record{Role: "plan", Agent: "pi", Command: []string{"pi", "-x"}, Status: s, Pid: 4242}
	}
	withError := func(s rundir.Status) rundir.Record {
		r := record(s)
		r.Error = &rundir.Error{Code: protocol.CodeAgent, Message: "it broke"}
		return r
	}
	rejected := record(rundir.Rejected)
	rejected.Reason, rejected.StepHash = "it lies", "0000000000000"
	for name, tt := range map[string]struct {
		record        rundir.Record
		make          func(w *world, id string)
		flight, tried bool
		why           string
		finished      bool
		alive         bool
	}{
		"at work":  {record: record(rundir.Running), make: (*world).Alive, flight: true, alive: true},
		"starting": {record: record(rundir.Starting), make: (*world).Alive, flight: true, alive: true},
		"killed":   {record: record(rundir.Running), tried: true, why: "its agent was killed"},
		"killed after its work": {record: record(rundir.Running),
			make: func(w *world, id string) { left(w, id, `{"stepHash":"0000000000000"}`) }, finished: true},
		"failed": {record: withError(rundir.Failed), tried: true, why: "it broke"},
		"failed with a result": {record: withError(rundir.Failed),
			make: func(w *world, id string) { left(w, id, `{"stepHash":"0000000000000"}`) }, tried: true, why: "it broke", finished: true},
		"rejected": {record: rejected, tried: true, why: "it lies"},
		"done":     {record: record(rundir.Done)},
		"of another head": {record: withError(rundir.Failed),
			make: func(w *world, id string) { w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again")) }},
		"of a thread that ended": {record: withError(rundir.Failed),
			make: func(w *world, id string) { w.End(id, completed) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := statustest.New(t)
			ctx := t.Context()
			id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
			w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
			w.Record(id, tt.record)
			if tt.make != nil {
				tt.make(w, id)
			}
			flight, err := w.Flight(ctx, id)
			require.NoError(t, err)
			require.Equal(t, tt.flight, flight != nil)
			tried, err := w.Tried(ctx, id)
			require.NoError(t, err)
			require.Equal(t, tt.tried, tried != nil)
			if tried != nil {
				require.Equal(t, tt.why, tried.Failed)
			}
			if flight != nil {
				require.Equal(t, []any{2, "plan", "pi", w.Clock.UnixMilli(), ""}, []any{flight.Number, flight.Role, flight.Agent, flight.Started.UnixMilli(), flight.Failed})
			}
			run := w.LastRun(ctx, id)
			require.Equal(t, []any{"plan", "pi", string(tt.record.Status), tt.alive, 4242, false}, []any{run.Role, run.Agent, run.Status, run.Alive, run.Pid, run.Attended})
			require.Equal(t, tt.finished, run.LastOutputAt != nil)
			require.Equal(t, []string{"pi", "-x"}, w.LastCommand(id))
			if tt.record.Error != nil {
				require.Equal(t, "it broke", run.Error)
			}
			running, err := w.Running(ctx)
			require.NoError(t, err)
			require.Equal(t, tt.flight, len(running) == 1)
			busy, err := w.Busy(ctx, id)
			require.NoError(t, err)
			require.Equal(t, tt.alive, busy)
		})
	}
}

// A try that replaces the last step has the number of that step. The last line of a command is shown without
// secrets.
func TestFlightOfAReplacement(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
	require.NoError(t, os.WriteFile(w.Dirs.DotEnv(), []byte("A_KEY=hush-hush-hush\n"), 0o600))
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	w.Record(id, rundir.Record{Role: "plan", Agent: protocol.CommandAgent, Status: rundir.Running, Replaces: true})
	w.Alive(id)
	require.NoError(t, w.RunDir(id).Replace(runfiles.OutputFile, []byte("one\nthe key is hush-hush-hush\n")))
	f, err := w.Flight(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 1, f.Number)
	require.Contains(t, f.Printed, "the key is ")
	require.NotContains(t, f.Printed, "hush")
	require.NoError(t, w.RunDir(id).Replace(runfiles.StderrFile, []byte("hush-hush-hush\n")))
	require.NotContains(t, w.LastRun(t.Context(), id).Stderr, "hush")
}

// A step was made here if it is in the store and is the result of the last run from its head.
func TestMadeHere(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	head := w.At(id)
	step := w.After(head, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	other := w.After(head, protocol.Step{Role: "plan"}, statustest.Answer("ok"))
	for name, tt := range map[string]struct {
		status    rundir.Status
		made, out protocol.Hash
		head      protocol.Hash
		want      bool
	}{
		"done":            {rundir.Done, step, "", head, true},
		"done, another":   {rundir.Done, other, "", head, false},
		"its output says": {rundir.Running, "", step, head, true},
		"its output lies": {rundir.Running, "", other, head, false},
		"failed":          {rundir.Failed, "", step, head, false},
		"of another head": {rundir.Done, step, "", step, false},
	} {
		w.Record(id, rundir.Record{Head: tt.head, Role: "plan", Status: tt.status, StepHash: tt.made})
		left(w, id, `{"stepHash":"`+string(tt.out)+`"}`)
		require.Equal(t, tt.want, w.MadeHere(ctx, id, head, step), name)
	}
	w.Record(id, rundir.Record{Head: head, Role: "plan", Status: rundir.Done, StepHash: step})
	require.True(t, w.MadeHere(ctx, id, head, step))
	w.Lose(step)
	require.False(t, w.MadeHere(ctx, id, head, step))
}

// A thread is run by the engine that holds its lock, or by an agent that outlived it; children are listed by
// key.
func TestRunning(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	id := planned(w, eachOf())
	kids := w.StartChildren(id)
	var key string
	for key = range kids {
		break
	}
	w.Record(kids[key], rundir.Record{Role: "rev", Agent: "pi", Status: rundir.Running, Engine: 1, Pid: 4242, Workflow: "W"})
	w.Alive(kids[key])
	w.Record(id, rundir.Record{Role: "plan", Agent: "pi", Head: first(w, id), Status: rundir.Done, Engine: 1})
	running, err := w.Running(ctx)
	require.NoError(t, err)
	require.Len(t, running, 1, "nobody holds the parent")
	require.Equal(t, 0, running[0].Pid, "its engine was killed")
	hold(w, id)
	running, err = w.Running(ctx)
	require.NoError(t, err)
	require.Len(t, running, 2)
	byThread := map[string]protocol.RunningThread{}
	for _, r := range running {
		byThread[r.Thread] = r
	}
	require.Equal(t, os.Getpid(), byThread[id].Pid, "who holds the lock says so")
	child := byThread[kids[key]]
	require.Equal(t, id+"/"+key, child.Path)
	require.Contains(t, []string{"x", "y"}, child.Label)
	require.Equal(t, []any{"rev", "pi", 4242, protocol.Hash("W"), w.Clock.UnixMilli()}, []any{child.Role, child.Agent, child.AgentPid, child.Workflow, child.StartedAt})

	err = w.HeldBy(ctx, id)
	require.Equal(t, protocol.CodeLocked, fault.Of(err).Code)
	require.Equal(t, []string{"to wait for it: uwf thread wait " + id, "to stop it: uwf thread stop " + id}, hints.All("", fault.Of(err)))
	require.Contains(t, fault.Of(err).Message, w.Clock.Format(time.RFC3339))
	for agent, then := range map[string]string{"pi": "to use its result", protocol.CommandAgent: "to run the command again"} {
		err = w.Outlived(id, rundir.Record{Agent: agent, Pid: 4242})
		require.Equal(t, protocol.CodeLocked, fault.Of(err).Code)
		require.Equal(t, then+": uwf thread wait "+id+"; uwf thread resume "+id, hints.All("", fault.Of(err))[0])
	}
}

// clocked returns a home with the clock of the test's bubble.
func clocked(t *testing.T) *statustest.World {
	w := statustest.New(t)
	w.Clock = time.Now()
	w.Env.Now = time.Now
	return w
}

// Wait returns when neither the thread nor a child runs, except between two of its children.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := clocked(t)
		ctx := t.Context()
		id := planned(w, panelOf())
		kids := w.StartChildren(id)
		lock := func(thread string) locker.Lock {
			held, err := w.Locks.Lock(ctx, thread)
			require.NoError(t, err)
			return held
		}
		busy := func(want bool) {
			t.Helper()
			got, err := w.Busy(ctx, id)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		began := time.Now()
		busy(false)
		require.Less(t, time.Since(began), 2*time.Second)
		held := lock(kids["b"])
		busy(true)
		_, err := w.WaitItself(ctx, id)
		require.NoError(t, err, "without its children")

		var order []string
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(10 * time.Second)
			require.NoError(t, held.Unlock())
			time.Sleep(100 * time.Millisecond) // the driver starts the next one
			held := lock(kids["a"])
			time.Sleep(10 * time.Second)
			order = append(order, "free")
			require.NoError(t, held.Unlock())
		})
		out, err := w.Wait(ctx, id)
		require.NoError(t, err)
		require.Equal(t, waits, out.Status)
		require.Equal(t, []string{"free"}, order)
		wg.Wait()

		w.End(kids["b"], cancelled)
		held = lock(kids["b"])
		busy(false) // it has ended
		require.NoError(t, held.Unlock())

		held = lock(id)
		brief, cancel := context.WithTimeoutCause(ctx, time.Minute, &protocol.Error{Code: protocol.CodeTimeout, Message: "enough"})
		defer cancel()
		_, err = w.Wait(brief, id)
		require.Equal(t, protocol.CodeTimeout, fault.Of(err).Code)
		require.NoError(t, held.Unlock())
	})
}

// An agent whose engine was killed is identified by the note on the lock.
func TestOrphan(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	birth := proc.Birth(os.Getpid())
	for _, child := range []locker.Holder{{Pid: 1}, {Pid: 1, Child: os.Getpid(), Birth: birth}} {
		w.Locks = noted{&lockertest.Memory{}, child}
		busy, err := w.Busy(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, child.Child != 0 && birth != "", busy)
	}
}

// noted is a free lock with a note.
type noted struct {
	locker.Locker
	who locker.Holder
}

func (n noted) Holder(context.Context, string) (locker.Holder, error) { return n.who, nil }

// Await waits for a parked thread until its time, or until the time of a child.
func TestAwaitParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := clocked(t)
		ctx := t.Context()
		id := planned(w, panelOf())
		kids := w.StartChildren(id)
		completes(w, kids["a"], 0)
		began := time.Now()
		require.NoError(t, w.AwaitParked(ctx, id))
		require.Zero(t, time.Since(began))
		require.NoError(t, w.Heads.SetFacts(ctx, kids["b"], heads.Facts{ParkedUntil: began.Add(10 * time.Minute).UnixMilli()}))
		require.NoError(t, w.AwaitParked(ctx, id))
		require.InDelta(t, float64(10*time.Minute), float64(time.Since(began)), float64(2*time.Second))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, w.Heads.SetFacts(ctx, kids["b"], heads.Facts{ParkedUntil: time.Now().Add(time.Hour).UnixMilli()}))
		require.Error(t, w.AwaitParked(ended, id))
	})
}
