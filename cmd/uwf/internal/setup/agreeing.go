package setup

import (
	"context"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Agreeing is a [Person] for --yes: Enter to every question. What Enter does not answer
// is an error that names the flags.
type Agreeing struct{ asked []string }

// Line answers a question.
func (a *Agreeing) Line(_ context.Context, question string) (string, error) {
	if strings.Contains(question, "[y/N]") || slices.Contains(a.asked, question) {
		return "", undecided(strings.TrimSpace(question))
	}
	a.asked = append(a.asked, question)
	return "", nil
}

// Secret answers the question for a key: it is kept, or taken from the environment.
func (a *Agreeing) Secret(ctx context.Context, question string) (string, error) {
	return a.Line(ctx, question)
}

func undecided(question string) error {
	return &protocol.Error{
		Code: protocol.CodeUsage, Message: "--yes cannot answer this: " + question,
		Hints: []string{"the flags answer it: --agent NAME, --provider NAME, --api-key-env VARIABLE, --model NAME, --commands all", "uwf setup --help"},
	}
}
