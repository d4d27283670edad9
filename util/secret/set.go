package secret

import (
	"slices"
	"strings"
	"sync"
)

// Hidden stands in for a secret.
const Hidden = "[hidden key]"

// Set is a set of secrets. The zero value is empty. Safe for concurrent use.
type Set struct {
	mu      sync.RWMutex
	all     []string
	matcher *matcher // nil: there are no secrets, or it is not built yet
}

// NewSet makes a set.
func NewSet(secrets ...string) *Set {
	s := &Set{}
	s.Add(secrets...)
	return s
}

// Add adds secrets. Those shorter than [Shortest] are not hidden.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range secrets {
		if len(text) >= Shortest && !slices.Contains(s.all, text) {
			s.all = append(s.all, text)
			s.matcher = nil
		}
	}
}

// Empty reports that there is nothing to hide.
func (s *Set) Empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all) == 0
}

// Hide replaces every secret in a text by [Hidden]. It takes time linear in the
// text, whatever the number of secrets.
func (s *Set) Hide(text string) string {
	m := s.ready()
	if m == nil || len(text) < Shortest {
		return text
	}
	return replace(text, m.find(text))
}

// HideValue hides what is secret in a value of JSON.
func (s *Set) HideValue(v any) any {
	if s.Empty() {
		return v
	}
	switch v := v.(type) {
	case string:
		return s.Hide(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.HideValue(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[s.Hide(key)] = s.HideValue(item)
		}
		return out
	}
	return v
}

// Holds reports whether a text holds a secret.
func (s *Set) Holds(text string) bool {
	m := s.ready()
	return m != nil && len(m.find(text)) > 0
}

// Split hides secrets in a text of which more will follow: it returns what may be shown so
// far, and the rest, which may be the beginning of a secret and must be put before what
// comes next.
func (s *Set) Split(text string) (shown, rest string) {
	m := s.ready()
	if m == nil {
		return text, ""
	}
	spans, end := m.find(text), m.unfinished(text)
	for _, span := range slices.Backward(spans) {
		if span.to <= end {
			break
		}
		end = min(end, span.from) // it may be longer than it looks
	}
	return replace(text[:end], slices.DeleteFunc(spans, func(x span) bool { return x.from >= end })), text[end:]
}

// ready is the matcher of all secrets, nil if there are none.
func (s *Set) ready() *matcher {
	s.mu.RLock()
	m, empty := s.matcher, len(s.all) == 0
	s.mu.RUnlock()
	if m != nil || empty {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.matcher == nil {
		s.matcher = newMatcher(s.all)
	}
	return s.matcher
}

// replace puts [Hidden] in place of each span.
func replace(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, span := range spans {
		b.WriteString(text[at:span.from])
		b.WriteString(Hidden)
		at = span.to
	}
	b.WriteString(text[at:])
	return b.String()
}
