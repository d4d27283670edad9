package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/internal/create"
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

// answer makes the step of a role that a person plays. An answer that does not fit leaves the
// thread as it is.
func (s *session) answer(ctx context.Context) (out protocol.StepOutput, err error) {
	if s.Answer == nil {
		return out, fault.New(protocol.CodeUsage, "there is no answer")
	}
	if err := create.Runnable(s.pos.Workflow); err != nil {
		return out, err
	}
	t := s.task
	if s.pos.Next.Cause != moderator.ByPerson { // the role was answered, and the graph asks again
		t.cwd = s.pos.State.Last.Location
	}
	return s.byItself(s.pos, t, protocol.PersonAgent).takeAnswer(ctx, *s.Answer)
}

// takeAnswer makes the step of an answer, if it fits.
func (a *attempt) takeAnswer(ctx context.Context, given Answer) (out protocol.StepOutput, err error) {
	b := a.Batch()
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
