package agentkit

import (
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
)

// secrets are texts that must not be stored or printed. Safe for concurrent use.
type secrets struct{ secret.Set }

// turn hides secrets in a turn.
func (s *secrets) turn(t protocol.Turn) protocol.Turn {
	if s.Empty() {
		return t
	}
	t.Content, t.Reasoning, t.ToolCallID = s.Hide(t.Content), s.Hide(t.Reasoning), s.Hide(t.ToolCallID)
	if r := t.Refused; r != nil {
		t.Refused = &protocol.Refused{Why: s.Hide(r.Why), Number: r.Number, Of: r.Of}
	}
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, call := range t.ToolCalls {
		t.ToolCalls[i].ID, t.ToolCalls[i].Name, t.ToolCalls[i].Args = s.Hide(call.ID), s.Hide(call.Name), s.HideValue(call.Args)
	}
	return t
}

// unfinished hides secrets in a turn that is still being written: also what may
// be the beginning of one.
func (s *secrets) unfinished(t protocol.Turn) protocol.Turn {
	t.Content, _ = s.Split(t.Content)
	t.Reasoning, _ = s.Split(t.Reasoning)
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, call := range t.ToolCalls {
		if args, ok := call.Args.(string); ok { // a piece of JSON
			t.ToolCalls[i].Args, _ = s.Split(args)
		}
	}
	return s.turn(t)
}

// hiddenError is an error whose text holds no secret.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }

// error hides secrets in an error's text.
func (s *secrets) error(err error) error {
	if err == nil || !s.Holds(err.Error()) {
		return err
	}
	return &hiddenError{text: s.Hide(err.Error()), err: err}
}
