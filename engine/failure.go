package engine

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/verify"
	"github.com/united-workforce/uwf/protocol"
)

// A failure is recorded as a step if the workflow handles it: by the "$error" edge of its role or, for a
// child, by the parent's rule for failed children.

// becomesStep reports whether the failure of action a is recorded as a step by the next decision.
func (s *session) becomesStep(ctx context.Context, a decide.Action) bool {
	runs := []decide.Kind{decide.RunAgent, decide.RunCommand, decide.RunAsked, decide.Join, decide.Adopt}
	r := s.dir.Read()
	if ctx.Err() != nil || r.Replaces || !r.UsedUp(s.locked.head) || !slices.Contains(runs, a.Kind) {
		return false
	}
	on, err := s.reader.OnError(ctx, s.pos, r.Role)
	return on && err == nil
}

// recordFailure makes a step of the recorded failure. It takes all times from the run, so that a repetition
// after a kill makes the same step.
func (s *session) recordFailure(ctx context.Context) (out protocol.StepOutput, err error) {
	r := s.record
	t := recorded(r)
	if t.prompt, err = s.promptOf(ctx, r.PromptHash); err != nil {
		return out, err
	}
	a := s.byItself(s.pos, t, r.Agent)
	a.record = r
	made := own{agent: r.Agent, by: protocol.ByValue, answer: "it failed", ended: r.StartedAt}
	made.failure = &protocol.StepFailure{}
	if r.Error != nil {
		made.answer, made.failure.Code = r.Error.Message, r.Error.Code
	}
	for _, try := range a.dir.Tries(s.pos.Thread) {
		made.ended = max(made.ended, try.AtMs)
	}
	release, err := a.reader.LockStore(ctx)
	if err != nil {
		return out, err
	}
	defer release()
	a.describe(r.Agent, false) // its start and failure were reported before
	defer func() { a.ended(out, err) }()
	result, err := a.submit(ctx, a.reader.Batch(), made)
	if err != nil {
		return out, err
	}
	step, err := cas.Read[protocol.Step](ctx, a.reader.Nodes(), result.StepHash)
	if err != nil {
		return out, err
	}
	return a.advance(ctx, verify.Accepted{Hash: result.StepHash, Step: step, Durable: true})
}
