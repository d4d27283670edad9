package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// maxCorrections bounds how many times an invalid answer is sent back.
const maxCorrections = 2

// settled is the outcome of a run and its corrections.
type settled struct {
	role    extract.Role
	output  extract.Output
	by      protocol.ExtractedBy
	problem *extract.InvalidError // why the last answer is not valid output

	session string          // newest ID: a continued session may get another one
	mark    string          // position at which the newest answer ends
	detail  protocol.Detail // of the first run, which did the work; Requests counts all runs
	bill    protocol.Bill   // of all runs
	limit   *Failure        // the provider's limit that suspended the step, or nil
	answers []string
}

// invalidError reports that no answer was valid output.
type invalidError struct {
	problem string // with the last answer
	raw     string // all answers
	err     error
}

func (e *invalidError) Error() string { return e.err.Error() }
func (e *invalidError) Unwrap() error { return e.err }

// settle runs the agent until its answer is valid output: first the run itself, then corrections in its
// session, then, if enabled, a model that extracts the output from the answer. It returns an [*invalidError]
// or an error of the agent or the store.
func (k *kit) settle(ctx context.Context, req *Request) (*settled, error) {
	s := &settled{role: extract.Role{Schema: req.Schema}}
	var err error
	if s.role.Compiled, err = k.batch.Compiled(ctx, k.role.Frontmatter); err != nil {
		return s, err
	}
	if !k.opts.Instant {
		proc.AwaitSignals(ctx)
	}
	if !k.opts.Enters {
		if err := k.run.Entered(); err != nil {
			return s, err
		}
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
			return s, s.invalid(fmt.Errorf("%w (while correcting: %s)", err, s.problem.Error()))
		}
	}
	if s.problem == nil {
		return s, nil
	}
	return s, k.lastResort(ctx, req, s)
}

// correct sends the last answer back for the nth time.
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
	if heard != "" { // its turns are recorded already
		message = heard + "\n\n" + message
	}
	res, err := k.call("continue", func() (Result, error) {
		return k.opts.Continue(ctx, s.session, message, req)
	})
	return k.take(ctx, s, res, err)
}

// take adds what a run returned, even with an error, because it incurred a cost.
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
		return err // the answer is unknown, so there is no reason to send it back
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
		res.Usage = nil // invalid figures must not fail the step
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

// invalid wraps an error in an invalidError that keeps the answers.
func (s *settled) invalid(err error) error {
	problem := ""
	if s.problem != nil {
		problem = s.problem.Error()
	}
	return &invalidError{problem: problem, raw: strings.Join(s.answers, "\n\n"), err: err}
}

// read extracts the output from a result. It returns the errors of [extract.Text].
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
		return out, protocol.ByValue, err
	case strings.TrimSpace(res.Output) == "":
		return extract.Output{}, "", &extract.InvalidError{Reason: "the answer is empty"}
	}
	out, err := extract.Text(ctx, valid(res.Output), role)
	return out, protocol.ByFrontmatter, err
}

// lastResort has a model extract the output, if the config names one for it.
func (k *kit) lastResort(ctx context.Context, req *Request, s *settled) error {
	failed := fmt.Errorf("invalid answer of role %s: %w", req.Role, s.problem)
	c, err := k.run.Config(ctx)
	if err != nil {
		return s.invalid(errors.Join(failed, err))
	}
	alias := config.ExtractModel(c)
	if alias == "" {
		return s.invalid(failed)
	}
	k.run.Log.Info("a model reads the answer", "model", alias, "problem", s.problem)
	answer := k.secrets.Hide(strings.Join(s.answers, "\n\n"))
	out, usage, err := modelcall.ExtractData(ctx, k.run.Env, c, alias, k.role.ExtractPrompt, answer, s.role)
	if usage != nil {
		s.bill.Add(usage)
	}
	if err != nil {
		k.run.Log.Warn("the model did not find the role's output", "model", alias, "error", err)
		return s.invalid(errors.Join(failed, err))
	}
	s.output, s.by, s.problem = out, protocol.ByLLM, nil
	return nil
}

// jsonValue converts anything that encoding/json can encode to a JSON value.
func jsonValue(v any) (any, error) {
	b, err := cas.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return cas.Decode(b)
}

// answerOf returns the whole answer as text.
func answerOf(res Result) string {
	switch {
	case res.Suspend != "":
		return valid(res.Suspend)
	case res.Value != nil:
		b, err := json.MarshalIndent(res.Value, "", "  ")
		if err != nil {
			return fmt.Sprint(res.Value) // read reports what is wrong with it
		}
		return string(b)
	}
	return valid(res.Output)
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// beside runs work in the background, in order, and stops after the first error. Items that arrive while it
// is busy are handled as one batch, because flushing many files costs little more than flushing one. Only the
// field work must be set. Its methods must not be called concurrently.
type beside[T any] struct {
	work func(list []T) error

	mu      sync.Mutex
	queue   []T
	working sync.WaitGroup
	busy    bool
	err     error
}

// mostWaiting bounds the queue, so that a disk slower than the agent does not fill memory.
const mostWaiting = 100

// do queues an item. It blocks only while the queue is full.
func (b *beside[T]) do(what T) {
	if b.waiting() >= mostWaiting {
		b.working.Wait()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.queue = append(b.queue, what)
	if !b.busy {
		b.busy = true
		b.working.Go(b.all)
	}
}

func (b *beside[T]) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// all handles queued items until none are left.
func (b *beside[T]) all() {
	for list := b.next(nil); len(list) > 0; {
		list = b.next(b.work(list))
	}
}

// next records the error of the last batch and returns the next one.
func (b *beside[T]) next(err error) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.err, b.queue = err, nil
	}
	list := b.queue
	b.queue, b.busy = nil, len(list) > 0
	return list
}

// wait waits until the queue is empty and returns the first error.
func (b *beside[T]) wait() error {
	b.working.Wait()
	return b.failed()
}

// failed returns the error that stopped the work, or nil.
func (b *beside[T]) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
