package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
)

// maxCorrections is how often an answer is sent back.
const maxCorrections = 2

// settled is what became of a run and its corrections.
type settled struct {
	role    extract.Role
	output  extract.Output
	by      protocol.ExtractedBy
	problem *extract.InvalidError // why the last answer is not the role's output

	session string          // the newest id: a continued session may get another one
	mark    string          // where the newest answer ends in it
	detail  protocol.Detail // the first run's, which did the work; requests of all
	bill    protocol.Bill   // of all runs
	limit   *Failure        // of the provider, for which it is suspended; nil: none
	answers []string
}

// invalidError means that no answer was the role's output.
type invalidError struct {
	problem string // of the last answer
	raw     string // all answers
	err     error
}

func (e *invalidError) Error() string { return e.err.Error() }
func (e *invalidError) Unwrap() error { return e.err }

// settle runs the agent until its answer is the role's output: the run itself,
// then corrections in its session, then, if that is switched on, a model that
// reads the answer. Errors: [*invalidError], those of the agent and the store.
func (k *kit) settle(ctx context.Context, req *Request) (*settled, error) {
	s := &settled{role: extract.Role{Schema: req.Schema}}
	var err error
	if s.role.Compiled, err = k.batch.Compiled(ctx, k.role.Frontmatter); err != nil {
		return s, err
	}
	res, err := k.call("run", func() (Result, error) { return k.opts.Run(ctx, req) })
	if err := k.take(ctx, s, res, err); err != nil {
		return s, err
	}
	for n := range maxCorrections {
		if s.problem == nil || k.opts.Continue == nil {
			break
		}
		if err := k.correct(ctx, req, s, n+1); err != nil {
			return s, s.invalid(fmt.Errorf("%w (it was to correct this: %s)", err, s.problem.Error()))
		}
	}
	if s.problem == nil {
		return s, nil
	}
	return s, k.lastResort(ctx, req, s)
}

// correct sends the last answer back, for the nth time.
func (k *kit) correct(ctx context.Context, req *Request, s *settled, n int) error {
	message := prompt.Correction(s.problem.Error(), req.Schema)
	if k.opts.Structured {
		message = prompt.ValueCorrection(s.problem.Error(), req.Schema)
	}
	heard, err := k.mail(ctx, req)
	if err != nil {
		return err
	}
	k.run.Log.Info("the answer is sent back", "session", s.session, "problem", s.problem)
	refused := protocol.Refused{Why: s.problem.Brief(), Number: n, Of: maxCorrections}
	if err := k.turns.corrected(ctx, message, &refused); err != nil {
		return err
	}
	if heard != "" { // its turns were recorded before
		message = heard + "\n\n" + message
	}
	res, err := k.call("continue", func() (Result, error) {
		return k.opts.Continue(ctx, s.session, message, req)
	})
	return k.take(ctx, s, res, err)
}

// take adds what a run returned, also with an error: it cost something.
func (k *kit) take(ctx context.Context, s *settled, res Result, err error) error {
	s.account(res)
	if err != nil {
		return err
	}
	answer := answerOf(res)
	if err := k.turns.returned(ctx, res, answer); err != nil {
		return err
	}
	s.answers = append(s.answers, answer)
	var invalid *extract.InvalidError
	s.output, s.by, err = read(ctx, res, s.role)
	if err != nil && !errors.As(err, &invalid) {
		return err // nobody knows about the answer: no reason to send it back
	}
	s.problem = invalid
	return nil
}

func (s *settled) account(res Result) {
	if res.SessionID != "" {
		s.session = res.SessionID
	}
	s.mark, s.limit = res.SessionMark, res.Limit
	if res.Usage.Plausible() != nil {
		res.Usage = nil // nonsense must not cost the step
	}
	s.bill.Add(res.Usage)
	if res.Detail == nil {
		return
	}
	if len(s.answers) == 0 {
		s.detail = *res.Detail
		return
	}
	s.detail.Requests = append(s.detail.Requests, res.Detail.Requests...)
	s.detail.DurationMs += res.Detail.DurationMs
}

// invalid makes an error of the kind that keeps the answers.
func (s *settled) invalid(err error) error {
	problem := ""
	if s.problem != nil {
		problem = s.problem.Error()
	}
	return &invalidError{problem: problem, raw: strings.Join(s.answers, "\n\n"), err: err}
}

// read turns a result into output. Errors: as of [extract.Text].
func read(ctx context.Context, res Result, role extract.Role) (extract.Output, protocol.ExtractedBy, error) {
	switch {
	case res.Suspend != "":
		suspend := protocol.NewSuspend(res.Suspend)
		return extract.Output{Suspend: &suspend}, protocol.ByValue, nil
	case res.Value != nil:
		v, err := jsonValue(res.Value)
		if err != nil {
			return extract.Output{}, "", &extract.InvalidError{Reason: err.Error()}
		}
		out, err := extract.Value(ctx, v, role)
		return out, cmp.Or(res.ExtractedBy, protocol.ByValue), err
	case strings.TrimSpace(res.Output) == "":
		return extract.Output{}, "", &extract.InvalidError{Reason: "the answer is empty"}
	}
	out, err := extract.Text(ctx, valid(res.Output), role)
	return out, protocol.ByFrontmatter, err
}
