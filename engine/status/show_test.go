package status_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/internal/summary"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

func lineOf(roles ...string) protocol.Workflow {
	all := map[string]protocol.Role{}
	for _, name := range roles {
		all[name] = protocol.Role{}
	}
	return statustest.Line(all, roles...)
}

// stood is the expected state of a thread. Omitted fields must be empty.
type stood struct {
	Status          protocol.Status
	Role, Suspended string // the next role, and the one for which a person is asked
	Code            protocol.Code
	Asks            string // the question
	Done, Pending   bool
	Agent           string
	Since           int64 // ms since the start of the test's clock
	Due             bool
}

func of(out protocol.StepOutput) stood {
	s := stood{Status: out.Status, Done: out.Done, Pending: out.Pending, Agent: out.Agent}
	if out.CurrentRole != "" {
		s.Role = string(out.CurrentRole)
	}
	if out.SuspendedRole != "" {
		s.Suspended = string(out.SuspendedRole)
	}
	if out.Error != nil {
		s.Code = out.Error.Code
	}
	if out.Question != nil {
		s.Asks = out.Question.Text
	}
	return s
}

const (
	idle, running, suspended   = protocol.StatusIdle, protocol.StatusRunning, protocol.StatusSuspended
	failed, completed, corrupt = protocol.StatusError, protocol.StatusCompleted, protocol.StatusCorrupt
	limited, cancelled         = protocol.StatusRateLimited, protocol.StatusCancelled
	waits                      = protocol.StatusWaitingForChildren
)

// The state of a thread follows from its chain, its facts, and the record of its last try.
func TestShow(t *testing.T) {
	t.Parallel()
	ok, again, ask := statustest.Answer("ok"), statustest.Answer("again"), statustest.Answer("ask")
	plan := protocol.Step{Role: "plan"}
	broke := &rundir.Error{Code: protocol.CodeAgent, Message: "it broke"}
	var known summary.Set // what it remembers of a head holds in every case
	for name, tt := range map[string]struct {
		limits *protocol.Limits
		facts  heads.Facts
		make   func(w *statustest.World, id string)
		want   stood
	}{
		"new": {want: stood{Status: idle, Role: "plan", Due: true}},
		"after a step": {make: func(w *statustest.World, id string) { w.Step(id, plan, ok) },
			want: stood{Status: idle, Role: "work", Since: 1000, Due: true}},
		"a question": {make: func(w *statustest.World, id string) { w.Step(id, plan, ask) },
			want: stood{Status: suspended, Suspended: "plan", Asks: "Why?", Since: 1000}},
		"the role asks": {make: func(w *statustest.World, id string) { w.Step(id, plan, statustest.Answer("$SUSPEND")) },
			want: stood{Status: suspended, Suspended: "plan", Asks: "I need a person", Since: 1000}},
		"the graph is stuck": {make: func(w *statustest.World, id string) { w.Step(id, plan, statustest.Answer("no")) },
			want: stood{Status: failed, Code: protocol.CodeInvalid, Since: 1000}},
		"a person's turn": {make: func(w *statustest.World, id string) {
			w.Step(id, plan, ok)
			w.Step(id, protocol.Step{Role: "work"}, ok)
		}, want: stood{Status: suspended, Suspended: "check", Asks: "Go.", Since: 1000}},
		"its end is not noted": {make: func(w *statustest.World, id string) {
			w.Step(id, plan, ok)
			w.Step(id, protocol.Step{Role: "work"}, ok)
			w.Step(id, protocol.Step{Role: "check"}, ok)
		}, want: stood{Status: completed, Since: 1000, Due: true}},
		"completed": {make: func(w *statustest.World, id string) { w.End(id, completed) },
			want: stood{Status: completed, Done: true}},
		"cancelled": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke})
			w.End(id, cancelled)
		}, want: stood{Status: cancelled, Done: true}},
		"resumed after its end, in vain": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke})
			w.End(id, completed)
		}, want: stood{Status: completed, Done: true, Code: protocol.CodeAgent}},

		// Limits are reached at their exact value.
		"max steps": {limits: &protocol.Limits{MaxSteps: 2}, make: func(w *statustest.World, id string) {
			w.Step(id, plan, again)
			w.Step(id, plan, again)
		}, want: stood{Status: suspended, Suspended: "plan", Since: 1000}},
		"below max steps": {limits: &protocol.Limits{MaxSteps: 3}, make: func(w *statustest.World, id string) {
			w.Step(id, plan, again)
			w.Step(id, plan, again)
		}, want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"max steps was lifted": {limits: &protocol.Limits{MaxSteps: 2}, make: func(w *statustest.World, id string) {
			w.Step(id, plan, again)
			w.Step(id, plan, again)
			w.Step(id, protocol.Step{Role: "plan", LimitBase: 2}, again)
		}, want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"max visits": {limits: &protocol.Limits{MaxVisitsPerRole: 2}, make: func(w *statustest.World, id string) {
			w.Step(id, plan, again)
			w.Step(id, plan, again)
		}, want: stood{Status: suspended, Suspended: "plan", Since: 1000}},
		"max visits was lifted": {limits: &protocol.Limits{MaxVisitsPerRole: 2}, make: func(w *statustest.World, id string) {
			w.Step(id, plan, again)
			w.Step(id, plan, again)
			w.Step(id, protocol.Step{Role: "plan", LimitBase: 2}, again)
		}, want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"max visits since it was lifted": {limits: &protocol.Limits{MaxVisitsPerRole: 2},
			make: func(w *statustest.World, id string) {
				w.Step(id, plan, again)
				w.Step(id, protocol.Step{Role: "plan", LimitBase: 1}, again)
				w.Step(id, plan, again)
			}, want: stood{Status: suspended, Suspended: "plan", Since: 1000}},
		"max cost": {limits: &protocol.Limits{MaxCostUSD: 0.3}, make: spend(plan, 0.1, 0.2),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"below max cost": {limits: &protocol.Limits{MaxCostUSD: 0.31}, make: spend(plan, 0.1, 0.2),
			want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"an unknown cost": {limits: &protocol.Limits{MaxCostUSD: 5}, make: spend(plan, 0.1, -1),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"an unknown cost that the tokens hold": {limits: &protocol.Limits{MaxCostUSD: 5, MaxTokens: 100}, make: spend(plan, 0.1, -1),
			want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"max tokens": {limits: &protocol.Limits{MaxTokens: 20}, make: spend(plan, 0, 0),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"max time": {limits: &protocol.Limits{MaxTimeMs: 2000}, make: spend(plan, 0, 0),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"more was granted": {limits: &protocol.Limits{MaxCostUSD: 0.3}, facts: heads.Facts{Limits: &heads.Limits{More: protocol.Amount{CostUSD: 0.1}}}, make: spend(plan, 0.1, 0.2),
			want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"the thread's own limit": {limits: &protocol.Limits{MaxCostUSD: 5}, facts: heads.Facts{Limits: &heads.Limits{Limits: protocol.Limits{MaxCostUSD: 0.3}}}, make: spend(plan, 0.1, 0.2),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"an unknown cost was accepted": {limits: &protocol.Limits{MaxCostUSD: 5}, facts: heads.Facts{Limits: &heads.Limits{More: protocol.Amount{Unknown: protocol.Unknown{Unpriced: 1}}}}, make: spend(plan, 0.1, -1),
			want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
		"a failed try has cost it": {limits: &protocol.Limits{MaxCostUSD: 0.3}, make: func(w *statustest.World, id string) {
			w.Step(id, protocol.Step{Role: "plan", Usage: statustest.Usage(0.1)}, again)
			tries(w, id, statustest.Usage(0.2))
		}, want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"its own budget": {make: usedUp("max_turns"),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"the run's rest": {make: usedUp("max_cost; of the run"),
			want: stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit, Since: 1000}},
		"another detail": {make: usedUp("stopped"),
			want: stood{Status: suspended, Suspended: "plan", Asks: "I need a person", Since: 1000}},

		// Tries.
		"at work": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Agent: "pi", Status: rundir.Running, StartedAt: w.Clock.UnixMilli() + 5})
			w.Alive(id)
		}, want: stood{Status: running, Role: "plan", Agent: "pi", Since: 5}},
		"at work after a question": {make: func(w *statustest.World, id string) {
			w.Step(id, plan, ask)
			w.Record(id, rundir.Record{Role: "plan", Agent: "pi", Status: rundir.Starting, Resumes: true})
			w.Alive(id)
		}, want: stood{Status: running, Role: "plan", Agent: "pi"}},
		"at work after its end": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Agent: "pi", Status: rundir.Running})
			w.Alive(id)
			w.End(id, completed)
		}, want: stood{Status: running, Role: "plan", Agent: "pi"}},
		"killed": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Running})
		}, want: stood{Status: idle, Role: "plan", Due: true}},
		"killed with its work done": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Running})
			left(w, id, `{"stepHash":"0000000000000"}`)
		}, want: stood{Status: idle, Role: "plan", Pending: true, Due: true}},
		"failed": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke, StartedAt: w.Clock.UnixMilli() + 5})
		}, want: stood{Status: failed, Role: "plan", Code: protocol.CodeAgent, Since: 5}},
		"failed at an earlier head": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke})
			w.Step(id, plan, ok)
		}, want: stood{Status: idle, Role: "work", Since: 1000, Due: true}},
		"an answer failed": {make: func(w *statustest.World, id string) {
			w.Step(id, plan, ask)
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke})
		}, want: stood{Status: suspended, Suspended: "plan", Asks: "Why?", Code: protocol.CodeAgent, Since: 1000}},
		"stopped": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Stopped, Error: broke})
		}, want: stood{Status: idle, Role: "plan", Due: true}},
		"rejected": {make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Rejected, StepHash: "0000000000000", Error: broke})
		}, want: stood{Status: failed, Role: "plan", Code: protocol.CodeAgent}},
		"a damaged record": {make: func(w *statustest.World, id string) {
			require.NoError(w.T, w.RunDir(id).Replace(runfiles.RecordFile, []byte("{}")))
		}, want: stood{Status: idle, Role: "plan", Code: protocol.CodeCorrupt, Due: true}},
		"between two steps": {make: func(w *statustest.World, id string) {
			before := w.At(id)
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Done, StepHash: w.Step(id, plan, ok), Head: before, More: true, StartedAt: w.Clock.UnixMilli() + 5})
			hold(w, id)
		}, want: stood{Status: running, Role: "work", Since: 5}},
		"between two steps, dead": {make: func(w *statustest.World, id string) {
			before := w.At(id)
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Done, StepHash: w.Step(id, plan, ok), Head: before, More: true})
		}, want: stood{Status: idle, Role: "work", Since: 1000, Due: true}},

		// Rate limits.
		"rate-limited": {facts: heads.Facts{ParkedUntil: parked}, want: stood{Status: limited, Role: "plan"}},
		"its time has come": {facts: heads.Facts{ParkedUntil: 1_700_000_000_000},
			want: stood{Status: idle, Role: "plan", Due: true}},
		"nobody waits so long": {facts: heads.Facts{ParkedUntil: parked + 33*24*3600*1000},
			want: stood{Status: idle, Role: "plan", Due: true}},
		"no longer parked": {facts: heads.Facts{ParkedUntil: status.NotParked},
			want: stood{Status: idle, Role: "plan", Due: true}},
		"rate-limited, with why": {facts: heads.Facts{ParkedUntil: parked}, make: func(w *statustest.World, id string) {
			w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke})
		}, want: stood{Status: limited, Role: "plan", Code: protocol.CodeAgent}},
		"its time has come, with why": {facts: heads.Facts{ParkedUntil: 1_700_000_000_000},
			make: func(w *statustest.World, id string) {
				w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: broke})
			}, want: stood{Status: idle, Role: "plan", Code: protocol.CodeAgent, Due: true}},
		"parked, then stuck": {facts: heads.Facts{ParkedUntil: 1_700_000_000_000},
			make: func(w *statustest.World, id string) {
				w.Step(id, plan, statustest.Answer("no"))
			}, want: stood{Status: failed, Code: protocol.CodeInvalid, Since: 1000}},

		// Threads that must not continue by themselves.
		"from elsewhere": {facts: heads.Facts{Imported: &heads.Imported{}},
			want: stood{Status: idle, Role: "plan"}},
		"from elsewhere, confirmed": {facts: heads.Facts{Imported: &heads.Imported{Confirmed: true}},
			want: stood{Status: idle, Role: "plan", Due: true}},
		"undone": {make: func(w *statustest.World, id string) {
			undone := w.After(w.At(id), plan, ok)
			require.NoError(w.T, w.Heads.SetFacts(w.T.Context(), id, heads.Facts{Undone: []protocol.Hash{undone}}))
		}, want: stood{Status: idle, Role: "plan"}},
		"undone, and gone on": {make: func(w *statustest.World, id string) {
			undone := w.After(w.At(id), plan, ok)
			require.NoError(w.T, w.Heads.SetFacts(w.T.Context(), id, heads.Facts{Undone: []protocol.Hash{undone}}))
			w.Step(id, plan, again)
		}, want: stood{Status: idle, Role: "plan", Since: 1000, Due: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := statustest.New(t)
			wf := statustest.Line(map[string]protocol.Role{"plan": {}, "work": {}, "check": {Person: true}}, "plan", "work", "check")
			wf.Limits = tt.limits
			id := w.StartWith(protocol.Start{Workflow: w.Workflow(wf), Prompt: "the task", Cwd: "/dir"}, tt.facts)
			if tt.make != nil {
				tt.make(w, id)
			}
			out, err := w.Show(t.Context(), id)
			require.NoError(t, err)
			got, want := of(out), tt.want
			due, err := w.Due(t.Context())
			require.NoError(t, err)
			got.Due = len(due) == 1
			since := w.Since(t.Context(), out)
			got.Since = *since - w.Clock.UnixMilli()
			require.Equal(t, want, got)
			require.Equal(t, w.At(id), out.Head)
			require.Equal(t, "line", out.WorkflowName)
			requireListed(t, w, id, out, since)
			requireRemembered(t, w, id, &known)
		})
	}
}

// requireRemembered checks that a listing that remembers heads shows the same.
func requireRemembered(t *testing.T, w *statustest.World, id string, known *summary.Set) {
	t.Helper()
	at, err := heads.Find(t.Context(), w.Heads, id)
	require.NoError(t, err)
	list := func(o *status.Overview) status.ThreadInfo {
		for item := range o.Threads(t.Context(), []status.Listed{{Thread: id, Head: at.Head, Ended: at.End}}) {
			return item
		}
		return status.ThreadInfo{}
	}
	want := list(w.Overview())
	for _, brief := range []bool{true, false, true} {
		o := w.Overview()
		o.Known, o.Brief = known, brief
		got := list(o)
		require.Equal(t, want.ThreadItem, got.ThreadItem)
		require.Equal(t, want.Since, got.Since)
		require.Equal(t, want.Dir, got.Dir)
		if !brief {
			require.Equal(t, want.Actions(), got.Actions())
			require.Equal(t, want.At.Question, got.At.Question)
		}
		_, remembered := known.Get(at.Head)
		require.True(t, remembered)
	}
}

// A run directory is read again after it has changed.
func TestRememberedRuns(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	before := w.At(id)
	w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	w.Record(id, rundir.Record{Head: before, Role: "plan", Status: rundir.Done})
	old := w.Clock.Add(-time.Hour)
	require.NoError(t, os.Chtimes(w.Dirs.Run(id), old, old))
	var known summary.Set
	list := func() protocol.Status {
		o := w.Overview()
		o.Known, o.Brief = &known, true
		for item := range o.Threads(t.Context(), []status.Listed{{Thread: id, Head: w.At(id)}}) {
			return item.Status
		}
		return ""
	}
	for range 3 {
		require.Equal(t, idle, list())
	}
	n, _ := known.Get(w.At(id))
	require.Equal(t, old.UnixNano(), n.Ran)
	w.Record(id, rundir.Record{Role: "plan", Status: rundir.Failed, Error: &rundir.Error{Code: protocol.CodeAgent, Message: "it broke"}})
	require.Equal(t, failed, list())
}

// Remembered totals are those that a thread itself has, although forks share heads and readers add totals.
func TestRememberedTotals(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	before := w.At(id)
	w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	w.Record(id, rundir.Record{Head: before, Role: "plan", Status: rundir.Done})
	fork, err := threadid.New(w.Clock, w.Env.Rand)
	require.NoError(t, err)
	require.NoError(t, w.Heads.Add(t.Context(), fork, w.At(id), heads.Facts{}))
	var known summary.Set
	list := func(known *summary.Set) (all []*protocol.Totals) {
		o := w.Overview()
		o.Known, o.Brief = known, true
		for item := range o.Threads(t.Context(), []status.Listed{{Thread: id, Head: w.At(id)}, {Thread: fork, Head: w.At(id)}}) {
			all = append(all, item.Totals)
		}
		return all
	}
	hour := w.Clock.Add(-time.Hour)
	require.NoError(t, os.Chtimes(w.Dirs.Run(id), hour, hour))
	for range 3 {
		require.Equal(t, []*protocol.Totals{nil, nil}, list(&known))
	}
	_, err = w.Totals(t.Context(), id, w.At(id))
	require.NoError(t, err)
	later := hour.Add(time.Minute)
	require.NoError(t, os.Chtimes(filepath.Join(w.Dirs.Run(id), runfiles.TotalsFile), later, later))
	require.NoError(t, os.Chtimes(w.Dirs.Run(id), hour, hour)) // as if the file had existed
	for range 3 {
		require.Equal(t, list(nil), list(&known))
	}
	require.NotNil(t, list(&known)[0])
}

const parked = 1_800_000_000_000 + 60_000

// requireListed checks that a listing and Show agree.
func requireListed(t *testing.T, w *statustest.World, id string, out protocol.StepOutput, since *int64) {
	t.Helper()
	at, err := heads.Find(t.Context(), w.Heads, id)
	require.NoError(t, err)
	for item := range w.Overview().Threads(t.Context(), []status.Listed{{Thread: id, Head: at.Head, Ended: at.End}}) {
		out.Output, item.At.Output, out.Message, item.At.Message = nil, nil, "", ""
		require.Equal(t, out, item.At)
		require.Equal(t, out.Status, item.Status)
		require.Equal(t, out.CurrentRole, item.CurrentRole)
		require.Equal(t, out.RateLimitedUntil, item.RateLimitedUntil)
		require.Equal(t, at.End != nil, item.CompletedAt != nil)
		require.Equal(t, "the task", item.Title)
		if at.End == nil {
			require.Equal(t, since, item.Since)
		}
		if out.Error != nil {
			require.Equal(t, out.Error.Message, item.Error)
		}
	}
}

// spend makes a step for each cost.
func spend(s protocol.Step, costs ...float64) func(w *statustest.World, id string) {
	return func(w *statustest.World, id string) {
		for _, usd := range costs {
			s.Usage = statustest.Usage(usd)
			w.Step(id, s, statustest.Answer("again"))
		}
	}
}

// usedUp makes a step that was ended for a reason and asks a person.
func usedUp(outcome string) func(w *statustest.World, id string) {
	return func(w *statustest.World, id string) {
		detail := w.Add(protocol.Detail{Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}, Outcome: outcome})
		w.Step(id, protocol.Step{Role: "plan", Detail: detail}, statustest.Answer("$SUSPEND"))
	}
}

// tries adds failed tries that belong to no step.
func tries(w *statustest.World, id string, costs ...*protocol.Usage) {
	var all runfiles.Tries
	for i, u := range costs {
		all = all.Add(runfiles.Try{Try: protocol.Try{Agent: "pi", Error: "it broke", Usage: u, AtMs: int64(i + 1)}})
	}
	require.NoError(w.T, w.RunDir(id).KeepTries(all))
}

// left writes the stdout of an agent.
func left(w *statustest.World, id, stdout string) {
	require.NoError(w.T, w.RunDir(id).Replace(runfiles.StdoutFile, []byte(stdout+"\n")))
}

// hold takes a thread's lock until the test ends.
func hold(w *statustest.World, id string) {
	held, err := w.Locks.Lock(w.T.Context(), id)
	require.NoError(w.T, err)
	require.NoError(w.T, held.Note(locker.Holder{Pid: os.Getpid(), Since: w.Clock}))
	w.T.Cleanup(func() { _ = held.Unlock() })
}

// A resume after a used-up step budget grants as much again; a run's budget must be raised.
func TestUsedUpHints(t *testing.T) {
	t.Parallel()
	for outcome, again := range map[string]bool{"max_cost": true, "max_cost; of the run": false} {
		w := statustest.New(t)
		wf := lineOf("plan")
		wf.Limits = &protocol.Limits{MaxCostUSD: 1, MaxTokens: 100}
		id := w.Start(w.Workflow(wf), heads.Facts{})
		usedUp(outcome)(w, id)
		out, err := w.Show(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, again, out.Error.Hint == "to grant the same number again: uwf thread resume "+id, out.Error.Hint)
		require.Contains(t, out.Error.Hint, id)
	}
}

// A missing or changed node makes its thread corrupt in every view, but no other thread.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *statustest.World, step protocol.Step) protocol.Hash{
		"start":    func(_ *statustest.World, s protocol.Step) protocol.Hash { return s.Start },
		"output":   func(_ *statustest.World, s protocol.Step) protocol.Hash { return s.Output },
		"workflow": func(w *statustest.World, _ protocol.Step) protocol.Hash { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := statustest.New(t)
			one := w.Workflow(lineOf("plan"))
			other := lineOf("plan")
			other.Name = "another"
			whole := w.Start(w.Workflow(other), heads.Facts{})
			id := w.Start(one, heads.Facts{})
			w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
			pos, err := w.HeadPosition(t.Context(), id)
			require.NoError(t, err)
			gone := lose(w, pos.Thread.Last.Step)
			if gone == "" {
				gone = one
			}
			w.Lose(gone)
			out, err := w.Show(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, stood{Status: corrupt, Code: protocol.CodeCorrupt}, of(out))
			require.Equal(t, w.At(id), out.Head)
			due, err := w.Due(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{whole}, due)
			for item := range w.Overview().Threads(t.Context(), []status.Listed{{Thread: id, Head: w.At(id)}}) {
				require.Equal(t, corrupt, item.Status)
				require.NotEmpty(t, item.Error)
			}
		})
	}
}

// An unreadable config affects only threads that need it, and isn't their failure.
func TestConfigThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	w.Config = nil
	full := lineOf("plan")
	full.Limits = &protocol.Limits{MaxSteps: 9, MaxVisitsPerRole: 9, MaxCostUSD: 9, MaxTokens: 9, MaxTimeMs: 9999}
	complete := w.Start(w.Workflow(full), heads.Facts{})
	w.Step(complete, protocol.Step{Role: "plan", Usage: statustest.Usage(0)}, statustest.Answer("again"))
	out, err := w.Show(t.Context(), complete)
	require.NoError(t, err)
	require.Equal(t, stood{Status: suspended, Suspended: "plan", Code: protocol.CodeLimit}, of(out), "10 of 9 tokens: no config is asked for")

	w = statustest.New(t)
	w.Config = func(context.Context) (protocol.Config, error) {
		return protocol.Config{}, &protocol.Error{Code: protocol.CodeInvalid, Message: "not YAML", Err: errors.ErrUnsupported}
	}
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	out, err = w.Show(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, stood{Status: idle, Role: "plan"}, of(out), "nothing can be reached yet")
	w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	out, err = w.Show(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, stood{Status: idle, Code: protocol.CodeInvalid}, of(out))
	_, _, err = w.Spending(t.Context(), id)
	require.Error(t, err)
}

// Unknown ids and threads.
func TestNoSuchThread(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	for _, id := range []string{"", "../x", "01JZ0000000000000000000000"} {
		var e *protocol.Error
		_, err := w.Show(t.Context(), id)
		require.ErrorAs(t, err, &e, id)
		require.Equal(t, protocol.CodeNotFound, e.Code)
		require.ErrorIs(t, err, heads.ErrNoThread)
		require.Nil(t, w.LastRun(t.Context(), id))
		require.Nil(t, w.LastCommand(id))
		require.False(t, w.MadeHere(t.Context(), id, "", ""))
	}
}
