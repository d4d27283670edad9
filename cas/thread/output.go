package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// Output is what a role delivered.
type Output struct {
	Type    cas.Hash          // the role's schema, or the suspend kind
	Value   any               // a JSON value
	Suspend *protocol.Suspend // set if the step suspended
}

// Output reads the output of a step.
func (t *Thread) Output(ctx context.Context, s Step) (Output, error) {
	out, err := readOutput(ctx, t.reader, s.Output)
	if err != nil {
		return Output{}, fmt.Errorf("output of step %s: %w", s.Hash, err)
	}
	return out, nil
}

// Shown is Output for those who only show it: in the place of one that was
// redacted stands what says so ([cas.RedactedError.Value]). Nobody may decide by it.
func (t *Thread) Shown(ctx context.Context, s Step) (Output, error) {
	out, err := t.Output(ctx, s)
	if redacted, ok := cas.AsRedacted(err); ok {
		return Output{Type: redacted.Tombstone.Type, Value: redacted.Value()}, nil
	}
	return out, err
}

func readOutput(ctx context.Context, r cas.Reader, h cas.Hash) (Output, error) {
	n, err := r.Get(ctx, h)
	if err != nil {
		return Output{}, err
	}
	out := Output{Type: n.Type}
	if out.Value, err = n.Value(); err != nil {
		return Output{}, &cas.CorruptError{Hash: h, Reason: err.Error()}
	}
	if value, _ := out.Value.(map[string]any); value[protocol.StatusKey] != protocol.SuspendNode {
		return out, nil // and the schema need not be read
	}
	suspend, err := cas.As[protocol.Suspend](ctx, r, n)
	var other *cas.TypeError
	switch {
	case err == nil:
		out.Suspend = &suspend
	case !errors.As(err, &other):
		return Output{}, err
	}
	return out, nil
}

// Redacted is the role of a turn that was redacted: nobody knows whose it was.
const Redacted protocol.TurnRole = "redacted"

// ShownTurn reads a turn for those who only show it: one that was redacted says so
// in its content. Errors: those of [cas.Read].
func ShownTurn(ctx context.Context, r cas.Reader, h cas.Hash) (protocol.Turn, error) {
	turn, err := cas.Read[protocol.Turn](ctx, r, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return protocol.Turn{Role: Redacted, Content: redacted.Mark(), AtMs: redacted.Tombstone.At}, nil
	}
	return turn, err
}

// IsNoTurn reports whether an error of [ShownTurn] says that there is no such turn, but
// nothing or another node: of one that an agent has only announced that may be a lie.
func IsNoTurn(err error) bool {
	var other *cas.TypeError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &other)
}

// ShownDetail reads a detail for those who only show it: one that was redacted says
// so as its outcome, and has no turns. Errors: those of [cas.Read].
func ShownDetail(ctx context.Context, r cas.Reader, h cas.Hash) (protocol.Detail, error) {
	detail, err := cas.Read[protocol.Detail](ctx, r, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return protocol.Detail{Outcome: redacted.Mark(), Turns: []cas.Hash{}}, nil
	}
	return detail, err
}

// Refused returns which answers of a step were refused, as its last turns say. What cannot be
// read is left out: it is shown elsewhere.
func Refused(ctx context.Context, r cas.Reader, detail cas.Hash) (all []protocol.Refused) {
	const most = 100 // turns: a correction repeats no work
	d, err := ShownDetail(ctx, r, detail)
	if err != nil {
		return nil
	}
	for _, h := range d.Turns[max(0, len(d.Turns)-most):] {
		if turn, err := ShownTurn(ctx, r, h); err == nil && turn.Refused != nil {
			all = append(all, *turn.Refused)
		}
	}
	return all
}

// Content is the last answer of the agent in a step's detail, "" if there is
// none, or if the detail is of a form that only an agent of the original's knows.
// If that answer may have been redacted, it is the mark that says so
// ([cas.RedactedError.Mark]). It reads turns from the last one back, so mostly one.
func Content(ctx context.Context, r cas.Reader, detail cas.Hash) (string, error) {
	d, err := cas.Read[protocol.Detail](ctx, r, detail)
	var other *cas.TypeError
	if errors.As(err, &other) && r.Algorithm() == cas.XXH64 {
		return "", nil
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		return redacted.Mark(), nil
	}
	if err != nil {
		return "", err
	}
	for _, h := range slices.Backward(d.Turns) {
		turn, err := cas.Read[protocol.Turn](ctx, r, h)
		if redacted, ok := cas.AsRedacted(err); ok {
			return redacted.Mark(), nil // nobody knows whose turn it was
		}
		if err != nil {
			return "", fmt.Errorf("turn of detail %s: %w", detail, err)
		}
		if turn.Role == protocol.TurnAssistant && strings.TrimSpace(turn.Content) != "" {
			return turn.Content, nil
		}
	}
	return "", nil
}
