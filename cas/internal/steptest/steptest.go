// Package steptest appends steps to chains, for tests of packages that store chains. Real steps are stored by
// module step, which depends on this one.
package steptest

import (
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Step is the content of a step.
type Step struct {
	Role           string
	Type           cas.Hash // type of Value
	Value          any
	Turns          []cas.Hash // if empty, Answer becomes the only turn
	Answer, Prompt string
}

// Append adds the nodes of a step to a batch, commits it, and returns the step's hash.
func Append(ctx context.Context, b *cas.Batch, t *thread.Thread, s Step) (cas.Hash, error) {
	output, err := b.AddValue(ctx, s.Type, s.Value)
	if err != nil {
		return "", err
	}
	if len(s.Turns) == 0 {
		turn, err := b.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: s.Answer, AtMs: 2})
		if err != nil {
			return "", err
		}
		s.Turns = []cas.Hash{turn}
	}
	detail, err := b.Add(ctx, protocol.Detail{SessionID: "s", DurationMs: 1, Turns: s.Turns,
		Capture: protocol.CaptureTurns})
	if err != nil {
		return "", err
	}
	prompt, err := b.Add(ctx, protocol.Text(s.Prompt))
	if err != nil {
		return "", err
	}
	step, err := t.Append(ctx, b, protocol.Step{
		Role: s.Role, Agent: "uwf-test", SessionID: "s", Output: output, Detail: detail, Prompt: &prompt,
		StartedAtMs: 1, CompletedAtMs: 2, ExtractedBy: protocol.ByValue,
	})
	if err != nil {
		return "", err
	}
	return step, b.Commit(ctx)
}
