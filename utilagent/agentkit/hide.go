package agentkit

import (
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/protocol"
)

// hidden stands in for a secret.
const hidden = "[hidden key]"

// secrets are texts that must not be stored or printed. Safe for concurrent use.
type secrets struct {
	mu       sync.RWMutex
	all      []string
	replacer *strings.Replacer // nil: there are none
}

// add adds secrets. Short ones protect nothing, and would hide what just looks
// like them.
func (s *secrets) add(texts []string) {
	const shortest = 8
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if len(text) >= shortest && !slices.Contains(s.all, text) {
			s.all = append(s.all, text)
		}
	}
	if len(s.all) == 0 {
		return
	}
	// A secret may be the beginning of another: the longer one is looked for first.
	slices.SortFunc(s.all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, text := range s.all {
		pairs = append(pairs, text, hidden)
	}
	s.replacer = strings.NewReplacer(pairs...)
}

// text hides secrets in a text.
func (s *secrets) text(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, secret := range s.all {
		if strings.Contains(text, secret) {
			return s.replacer.Replace(text)
		}
	}
	return text // as nearly always; to find that out costs a tenth of a replacement
}

// none reports that there is nothing to hide.
func (s *secrets) none() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.replacer == nil
}

// value hides secrets in a JSON value.
func (s *secrets) value(v any) any {
	if s.none() {
		return v
	}
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.value(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[s.text(k)] = s.value(item)
		}
		return out
	}
	return v
}

// turn hides secrets in a turn.
func (s *secrets) turn(t protocol.Turn) protocol.Turn {
	if s.none() {
		return t
	}
	t.Content, t.Reasoning, t.ToolCallID = s.text(t.Content), s.text(t.Reasoning), s.text(t.ToolCallID)
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, call := range t.ToolCalls {
		t.ToolCalls[i].ID, t.ToolCalls[i].Name, t.ToolCalls[i].Args = s.text(call.ID), s.text(call.Name), s.value(call.Args)
	}
	return t
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
	if err == nil || s.text(err.Error()) == err.Error() {
		return err
	}
	return &hiddenError{text: s.text(err.Error()), err: err}
}
