package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
)

// UnfitError means that a person's answer is not what the role's schema asks for. The
// thread still waits.
type UnfitError struct{ Problems []jsonschema.Problem }

// Error implements error.
func (e *UnfitError) Error() string {
	var b strings.Builder
	b.WriteString("the answer does not fit:")
	for _, p := range e.Problems {
		field := strings.TrimPrefix(p.Path, "/")
		if field == "" {
			field = "the answer as a whole"
		}
		fmt.Fprintf(&b, "\n- %s: %s", plaintext.Line(field), plaintext.Line(p.Message))
	}
	return b.String()
}

// maxBy is the longest name of somebody who answers, in bytes.
const maxBy = 200

// answer makes the step of a role that a person plays. An answer that does not fit, or whose
// question is no longer asked, leaves the thread as it is. Everything is checked under the
// thread's lock, so the first of two answers counts.
func (e *Engine) answer(ctx context.Context, h *lockedThread, given *Answer, o StepOptions) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if given == nil {
		return none, fault.New(protocol.CodeUsage, "there is no answer")
	}
	if h.ended != nil {
		return none, hasEnded(h)
	}
	last, pos, err := e.idle(ctx, h)
	if err != nil {
		return none, err
	}
	switch {
	case given.At != "" && given.At != h.head:
		return none, fault.Hinted(fault.New(protocol.CodeFailed, "thread %s has moved on: its head is %s now, not %s. Nothing was answered", h.id, h.head, given.At),
			"uwf thread show "+h.id)
	case pos.Problem != nil:
		return none, pos.Explain()
	case pos.Form == nil:
		return none, asksNoForm(pos)
	}
	out, adopted, err := e.answeredBefore(ctx, h, pos, last, o)
	if err == nil && adopted {
		err = fault.Hinted(fault.New(protocol.CodeFailed, "role %q was answered before, and that answer counts", pos.Next.Role), "uwf thread show "+h.id)
	}
	if err != nil {
		return out, err
	}
	a, err := e.personAttempt(ctx, h, pos, o)
	if err != nil {
		return none, err
	}
	return a.takeAnswer(ctx, *given)
}

// asksNoForm says what a thread waits for instead of a form.
func asksNoForm(p *status.Position) error {
	switch p.Next.Kind {
	case moderator.Suspend:
		return fault.Hinted(fault.New(protocol.CodeFailed, "thread %s asks for words, not for data", p.ID), "uwf thread resume "+p.ID+" -p '<answer>'")
	case moderator.End:
		return fault.New(protocol.CodeFailed, "thread %s asks nothing: it is at its end", p.ID)
	}
	return fault.Hinted(fault.New(protocol.CodeFailed, "thread %s asks nothing: next is role %q", p.ID, p.Next.Role), "uwf thread step "+p.ID)
}

// personAttempt is the attempt at the step of the role that a person plays.
func (e *Engine) personAttempt(ctx context.Context, h *lockedThread, pos *status.Position, o StepOptions) (*attempt, error) {
	if err := runnable(pos.Workflow); err != nil {
		return nil, err
	}
	t, err := e.task(ctx, pos, pos.Next)
	if err != nil {
		return nil, err
	}
	if pos.Next.Cause != moderator.ByPerson { // the role was answered, and the graph asks again
		t.cwd = pos.State.Last.Location
	}
	a := e.newAttempt(h, pos, t)
	a.more = o.more
	a.cmd = casting.Command{Name: protocol.PersonAgent, Written: []string{}}
	return a, nil
}

// answeredBefore adopts an answer whose step was made by an engine that was killed before it
// moved the head. If there is none, it says where the thread stands.
func (e *Engine) answeredBefore(ctx context.Context, h *lockedThread, pos *status.Position, last rundir.Record, o StepOptions) (protocol.StepOutput, bool, error) {
	if _, finished := e.RunDir(h.id).Finished(); o.Fresh || !finished || !last.Unfinished(h.head) {
		return pos.Output(), false, nil
	}
	a, err := e.personAttempt(ctx, h, pos, o)
	if err != nil {
		return protocol.StepOutput{}, false, err
	}
	out, adopted, err := a.takeOver(ctx, last)
	if err == nil && !adopted {
		out = pos.Output()
	}
	return out, adopted, err
}

// takeAnswer makes the step of an answer, if it fits.
func (a *attempt) takeAnswer(ctx context.Context, given Answer) (out protocol.StepOutput, err error) {
	b := a.batch()
	set := a.Secrets()
	output, text, err := a.fitting(ctx, b, set.HideValue(given.Value))
	if err != nil {
		return out, err
	}
	if a.task.cwd, err = a.workplace(ctx); err != nil {
		return out, err
	}
	if err := a.keepFiles(ctx); err != nil {
		return out, err
	}
	defer a.kept.Release()
	return a.withoutProcess(ctx, func() (protocol.Result, error) {
		by := plaintext.Line(set.Hide(strings.TrimSpace(given.By)))
		return a.submit(ctx, b, own{
			agent: protocol.PersonAgent, output: output, by: protocol.ByValue, answer: text,
			detail: protocol.Detail{By: strings.ToValidUTF8(by[:min(len(by), maxBy)], "")},
		})
	})
}

// fitting is an answer as the role's output, and as a text. The error is an
// [*UnfitError] if it is not what the schema asks for.
func (a *attempt) fitting(ctx context.Context, b *cas.Batch, value any) (extract.Output, string, error) {
	role, err := a.judge(ctx, b)
	if err != nil {
		return extract.Output{}, "", err
	}
	output, err := extract.Value(ctx, value, role)
	var invalid *extract.InvalidError
	switch {
	case errors.As(err, &invalid):
		unfit := &UnfitError{Problems: invalid.Problems}
		if invalid.Reason != "" {
			unfit.Problems = []jsonschema.Problem{{Message: invalid.Reason}}
		}
		return output, "", a.unfit(unfit)
	case err != nil:
		return output, "", err
	case output.Suspend != nil:
		return output, "", a.unfit(&UnfitError{Problems: []jsonschema.Problem{{Path: "/" + protocol.StatusKey, Message: "the thread waits already: a person cannot suspend it"}}})
	}
	text, err := json.Marshal(output.Value)
	return output, string(text), err
}

func (a *attempt) unfit(err *UnfitError) error {
	return fault.Hinted(&protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err}, "uwf thread show "+a.locked.id+" shows what is asked")
}
