package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/runfiles"
)

// diagnosis is a diagnosis in progress.
type diagnosis struct {
	protocol.ThreadDiagnosis
	reader *status.Reader
}

// Diagnose examines a thread for problems: its state, the last try of a step, the agent of the next role,
// every node of the chain, loops and limits. A damaged node is not an error, but gives the status corrupt.
func Diagnose(ctx context.Context, e *engine.Engine, id string) (protocol.ThreadDiagnosis, error) {
	state, err := e.Reader.Show(ctx, id)
	if err != nil {
		return protocol.ThreadDiagnosis{}, err
	}
	d := diagnosis{protocol.ThreadDiagnosis{Thread: id, Status: state.Status, Head: state.Head,
		Findings: []protocol.ThreadFinding{}}, &e.Reader}
	run := e.Reader.LastRun(ctx, id)
	d.ofState(state, run)
	if run != nil {
		d.Run = &run.LastTry
		d.ofRun(state, *run, e.Reader.Env.Now())
	}
	if state.CurrentRole != "" && state.Status != protocol.StatusRunning {
		if w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, state.Workflow); err == nil {
			facts, _ := e.Reader.Heads.Facts(ctx, id) // damage is reported with the state
			earlier, _ := e.Reader.ChosenAgents(ctx, facts)
			d.ofAgent(e.Casting().Cast(ctx, w, string(state.CurrentRole), agentselect.Choices{Earlier: earlier}))
		}
	}
	d.ofChain(ctx, e, state)
	return d.ThreadDiagnosis, nil
}

func (d *diagnosis) add(level, hint, format string, args ...any) {
	d.Findings = append(d.Findings, protocol.ThreadFinding{Level: level, Hint: hint, Message: fmt.Sprintf(format,
		args...)})
}

// hint returns the hint for a reason.
func (d *diagnosis) hint(name string, facts ...string) string {
	return strings.Join(d.reader.HintsFor(protocol.Why(name, append(facts, "thread", d.Thread)...)), "\n")
}

// ofState reports the thread's state.
func (d *diagnosis) ofState(s protocol.StepOutput, last *status.Run) {
	switch {
	case s.Status == protocol.StatusCorrupt:
		d.add("error", d.hint("node-lost", salvageHead(s.Head, last)...), "%s", s.Error.Message)
	case s.Pending:
		d.add("note", d.hint("result-pending"), "an interrupted step left a finished result; the next step uses it "+
			"without running the agent again")
	case s.Status == protocol.StatusSuspended && status.AtLimit(s):
		d.add("note", s.Error.Hint, "it stopped at a limit: %s", s.Error.Message)
	case s.Status == protocol.StatusRateLimited && s.RateLimitedUntil != nil:
		why, now := "", d.hint("rate-limited")
		if s.Error != nil {
			why, now = ": "+s.Error.Message, s.Error.Hint
		}
		d.add("note", now, "it is rate-limited until %s%s", time.UnixMilli(*s.RateLimitedUntil).Format(time.DateTime), why)
	case s.Error != nil:
		d.add("error", s.Error.Hint, "%s", s.Error.Message)
	case s.Status == protocol.StatusSuspended:
		if s.Question != nil && s.Question.Schema != nil {
			d.add("note", d.hint("needs-form"), "role %s waits for a person: %s", s.Question.Role,
				plaintext.Line(s.Question.Text))
			return
		}
		why := string(s.Status)
		if s.SuspendMessage != "" {
			why += ": " + plaintext.Line(string(s.SuspendMessage))
		}
		d.add("note", d.hint("needs-words"), "it waits for a person: %s", why)
	}
}

// quiet is the time without output after which an agent is reported as quiet.
const quiet = 5 * time.Minute

// ofRun reports the outcome of the last try.
func (d *diagnosis) ofRun(s protocol.StepOutput, r status.Run, now time.Time) {
	started := time.UnixMilli(r.StartedAt)
	switch {
	case r.Damaged:
		d.add("warning", d.hint("record-unreadable"), "the record of the last attempt in %s is unreadable; it "+
			"only matters while an agent is running", r.Dir)
		return
	case s.Status == protocol.StatusRunning && r.Alive && !r.Attended:
		then := "uses its result"
		if r.Agent == protocol.CommandAgent && !runfiles.Dir(r.Dir).Outlasts() {
			then = "runs the command again"
		}
		d.add("warning", d.hint("agent-unattended"), "agent %s (pid %d) is still working, but its parent process "+
			"is gone; the next step %s", r.Agent, r.Pid, then)
	case s.Status == protocol.StatusRunning:
		d.add("note", d.hint("in-flight"), "role %s has been running on %s for %s", r.Role, r.Agent,
			since(started, now))
	}
	if s.Status == protocol.StatusRunning && r.Alive {
		heard := started
		if r.LastOutputAt != nil {
			heard = time.UnixMilli(*r.LastOutputAt)
		}
		if now.Sub(heard) > quiet {
			d.add("warning", d.hint("agent-silent"), "the agent has written nothing for %s; it may be stuck",
				since(heard, now))
		}
	}
}

// ofAgent reports whether the agent of the next role is available.
func (d *diagnosis) ofAgent(c agentselect.Casting) {
	if c.Problem == nil {
		d.add("note", "", "next is role %s, played by %s (%s)", c.Role, c.Agent, c.Path)
		return
	}
	d.Findings = slices.DeleteFunc(d.Findings, func(f protocol.ThreadFinding) bool { // the last try failed for the same reason
		return f.Message == c.Problem.Message
	})
	first, _, _ := strings.Cut(strings.Join(d.reader.HintsOf(c.Problem), "\n"), "\n")
	d.add("error", first, "role %s cannot run: %s", c.Role, c.Problem.Message)
}

// ofChain reads every step with its nodes, and looks for common problems of runs.
func (d *diagnosis) ofChain(ctx context.Context, e *engine.Engine, s protocol.StepOutput) {
	t, err := thread.Open(ctx, e.Reader.Store, s.Head)
	if err != nil {
		return // damage of the head is reported already
	}
	d.Totals = &protocol.Totals{}
	byModel := 0
	var newer thread.Step // the step after step
	for step, err := range t.Steps(ctx) {
		lost := err != nil
		if !lost {
			newer = step
			err = readStep(ctx, t, e, step)
		}
		if err != nil {
			d.Status, d.Totals = protocol.StatusCorrupt, nil
			d.add("error", d.hint("node-lost", salvageBefore(ctx, e.Reader.Store, newer, lost)...), "the chain is damaged: %v", err)
			return
		}
		d.Totals.Add(step.Step)
		if step.ExtractedBy == protocol.ByLLM {
			byModel++
		}
	}
	if byModel > 0 {
		d.add("warning", d.hint("extracted-by-model"), "the answer of %s had the wrong form; a model extracted "+
			"its data, which may be wrong", render.Count(byModel, "step"))
	}
	d.ofLimits(ctx, e, t)
	if n := d.Totals.StepsWithoutUsage; n > 0 {
		d.add("note", "", "the cost of %s is unknown", render.Count(n, "step"))
	}
}

// readStep reads the nodes of a step, to find damage.
func readStep(ctx context.Context, t *thread.Thread, e *engine.Engine, s thread.Step) error {
	if _, err := t.Shown(ctx, s); err != nil {
		return fmt.Errorf("step %d: %w", s.Index+1, err)
	}
	if _, err := thread.Content(ctx, e.Reader.Store, s.Detail); err != nil {
		return fmt.Errorf("step %d: %w", s.Index+1, err)
	}
	return nil
}

// ofLimits reports loops and limits that are almost reached.
func (d *diagnosis) ofLimits(ctx context.Context, e *engine.Engine, t *thread.Thread) {
	if t.Last == nil {
		return
	}
	const often = 5
	for role, n := range t.Last.Visits {
		if n >= often {
			d.add("note", d.hint("many-visits"), "role %s has run %d times: is the workflow looping?", role, n)
		}
	}
	limits, spent, err := e.Reader.Spending(ctx, d.Thread)
	if err != nil {
		return
	}
	d.ofBudget(limits, spent)
	if left := limits.MaxSteps - (t.Len() - t.Last.LimitBase); limits.MaxSteps > 0 && left <= limits.MaxSteps/10 {
		d.add("note", "", "%d steps are left until the limit of %d; then the thread waits for a person", max(0, left),
			limits.MaxSteps)
	}
}

// ofBudget reports what is left of the cost limits.
func (d *diagnosis) ofBudget(l protocol.Limits, spent protocol.Amount) {
	for i, most := range l.Amount().Figures() {
		if most > 0 {
			d.add("note", "", "%s", protocol.Measures()[i].OfAtMost(spent.Figures()[i], most))
		}
	}
}

// since formats the time between two times.
func since(from, to time.Time) string { return render.Duration(to.Sub(from).Milliseconds()) }
