package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// diagnosis answers thread diagnose.
type diagnosis struct {
	Thread   string           `json:"thread"`
	Status   protocol.Status  `json:"status"`
	Head     protocol.Hash    `json:"head"`
	Totals   *protocol.Totals `json:"totals"`
	Run      *diagnosedRun    `json:"run"` // the last try of a step; null: nothing is known
	Findings []finding        `json:"findings"`
}

// finding is one thing that is worth knowing, with what to do about it.
type finding struct {
	Level   string `json:"level"` // error: the thread cannot go on; warning; note
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // a command, or what to do
}

// diagnosedRun is an engine.Run in JSON.
type diagnosedRun struct {
	Role      string   `json:"role"`
	Agent     string   `json:"agent"`
	Command   []string `json:"command"`
	Status    string   `json:"status"`
	Alive     bool     `json:"alive"`
	StartedAt int64    `json:"startedAt"`
	HeardAt   *int64   `json:"heardAt"` // ms; null: the agent has written nothing
	Error     string   `json:"error,omitempty"`
	Stderr    string   `json:"stderr"`
	WorkerLog string   `json:"workerLog,omitempty"`
	Dir       string   `json:"dir"`
}

func (a *app) threadDiagnoseCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "diagnose", ArgsUsage: "<thread>", Usage: "find out what is wrong with a thread, and what to do about it",
		Description: "Checks where the thread stands, the last try of a step, who would play the next role, every node\n" +
			"of the chain, loops and limits. Exit status 7 if a node is damaged; what else it finds is no error.",
	}, a.threadDiagnose)
}

func (a *app) threadDiagnose(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	state, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	d := diagnosis{Thread: id, Status: state.Status, Head: state.Head, Findings: []finding{}}
	run := e.LastRun(ctx, id)
	d.ofState(state, run)
	if run != nil {
		d.Run = runJSON(*run)
		d.ofRun(state, *run, a.env.Now())
	}
	if state.CurrentRole != nil && state.Status != protocol.StatusRunning {
		d.ofAgent(e.Cast(ctx, state.WorkflowName, *state.CurrentRole, engine.StepOptions{}))
	}
	a.diagnoseChain(ctx, e, &d, state)
	if d.Status == protocol.StatusCorrupt {
		a.status = protocol.CodeCorrupt
	}
	return a.print(d, func(w io.Writer) error { return d.text(w, a.env.Now()) })
}

func (d *diagnosis) add(level, hint, format string, args ...any) {
	d.Findings = append(d.Findings, finding{Level: level, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// ofState tells where the thread stands.
func (d *diagnosis) ofState(s protocol.StepOutput, last *engine.Run) {
	switch {
	case s.Status == protocol.StatusCorrupt:
		d.add("error", salvageHead(s.Head, last), "%s", s.Error.Message)
	case s.Pending:
		d.add("note", "uwf thread step "+s.Thread, "an interrupted step left a finished result; the next step uses it without running the agent again")
	case s.Error != nil:
		d.add("error", s.Error.Hint, "%s", s.Error.Message)
	case s.Status == protocol.StatusSuspended:
		d.add("note", "uwf thread resume "+s.Thread+" -p '<answer>'", "it waits for a person: %s", statusText(s))
	}
}

// quiet is how long an agent may say nothing before that is worth a remark.
const quiet = 5 * time.Minute

// ofRun tells what became of the last try.
func (d *diagnosis) ofRun(s protocol.StepOutput, r engine.Run, now time.Time) {
	switch {
	case r.Damaged:
		d.add("warning", "uwf thread step "+d.Thread, "the record of the last try, in %s, is unreadable; it only matters while an agent is running", r.Dir)
		return
	case s.Status == protocol.StatusRunning && r.Alive && !r.Attended:
		d.add("warning", "uwf thread wait "+d.Thread, "agent %s (pid %d) still works, but the process that started it is gone; the next step uses its result", r.Agent, r.Pid)
	case s.Status == protocol.StatusRunning:
		d.add("note", "uwf thread watch "+d.Thread, "role %s has been running on %s for %s", r.Role, r.Agent, sinceText(r.Started, now))
	}
	if s.Status == protocol.StatusRunning && r.Alive {
		heard := r.Heard
		if heard.IsZero() {
			heard = r.Started
		}
		if now.Sub(heard) > quiet {
			d.add("warning", "uwf thread stop "+d.Thread, "the agent has written nothing for %s; it may be stuck", sinceText(heard, now))
		}
	}
}

// ofAgent tells whether the next role can be played.
func (d *diagnosis) ofAgent(c engine.Casting) {
	if c.Problem == nil {
		d.add("note", "", "next is role %s, played by %s (%s)", c.Role, c.Agent, c.Path)
		return
	}
	hint := ""
	if len(c.Problem.Hints) > 0 {
		hint = c.Problem.Hints[0]
	}
	d.add("error", hint, "role %s cannot be played: %s", c.Role, c.Problem.Message)
}

// diagnoseChain reads every step with what it names, and looks for what tends to
// go wrong in runs.
func (a *app) diagnoseChain(ctx context.Context, e *engine.Engine, d *diagnosis, s protocol.StepOutput) {
	t, err := a.openThread(ctx, s.Head)
	if err != nil {
		return // what is wrong with the head has been said
	}
	d.Totals = &protocol.Totals{}
	byModel := 0
	var newer thread.Step // the one after step
	for step, err := range t.Steps(ctx) {
		lost := err != nil
		if !lost {
			newer = step
			err = readStep(ctx, t, e, step)
		}
		if err != nil {
			d.Status, d.Totals = protocol.StatusCorrupt, nil
			d.add("error", a.salvageBefore(ctx, newer, lost), "the chain is damaged: %v", err)
			return
		}
		d.Totals.Add(step.Step)
		if step.ExtractedBy == protocol.ByLLM {
			byModel++
		}
	}
	if byModel > 0 {
		d.add("warning", "uwf thread steps "+d.Thread, "a model extracted the data of %s from an answer in the wrong form; it may be wrong", render.Count(byModel, "step"))
	}
	a.diagnoseLimits(ctx, e, d, t)
	if n := d.Totals.StepsWithoutUsage; n > 0 {
		d.add("note", "", "what %s cost is unknown", render.Count(n, "step"))
	}
}

// readStep reads what a step names, so that damage is found.
func readStep(ctx context.Context, t *thread.Thread, e *engine.Engine, s thread.Step) error {
	if _, err := t.Shown(ctx, s); err != nil {
		return fmt.Errorf("step %d: %w", s.Index+1, err)
	}
	if _, err := thread.Content(ctx, e.Store, s.Detail); err != nil {
		return fmt.Errorf("step %d: %w", s.Index+1, err)
	}
	return nil
}

// diagnoseLimits tells of loops, and of limits that are near.
func (a *app) diagnoseLimits(ctx context.Context, e *engine.Engine, d *diagnosis, t *thread.Thread) {
	if t.Last == nil {
		return
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return
	}
	const often = 5
	for role, n := range t.Last.Visits {
		if n >= often {
			d.add("note", "uwf thread graph "+d.Thread, "role %s has run %d times: is the workflow looping?", role, n)
		}
	}
	limits, err := e.Limits(ctx, wf)
	if err != nil {
		return
	}
	if left := limits.MaxSteps - (t.Len() - t.Last.LimitBase); limits.MaxSteps > 0 && left <= limits.MaxSteps/10 {
		d.add("note", "", "%d steps are left until the limit of %d; then the thread waits for a person", max(0, left), limits.MaxSteps)
	}
}
