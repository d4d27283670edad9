package cliagent

import (
	"errors"
	"strings"
)

// ErrCannotFork is what [Adapter.Command] returns for a copy of a session that the
// installed version cannot make: the step then starts over with the whole prompt.
var ErrCannotFork = errors.New("this version cannot copy a session")

// Error is why a program could not do a step's work, for a person.
type Error struct {
	Program string
	Kind    ErrorKind
	Text    string
	Hint    string   // what to type; "" if nothing helps
	Held    []string // more hints, about the confinement
	Logs    string   // where both streams are kept; "" if nowhere
}

// Error implements error: what and why, then the hints, each on a line of its own.
func (e *Error) Error() string {
	lines := []string{e.Text}
	if e.Hint != "" {
		lines = append(lines, "hint: "+e.Hint)
	}
	for _, hint := range e.Held {
		lines = append(lines, "hint: "+hint)
	}
	if e.Logs != "" {
		lines = append(lines, "hint: all that it printed is in "+e.Logs)
	}
	return strings.Join(lines, "\n")
}

// maxShown is how much of what a program wrote is part of an error.
const maxShown = 2000

// Excerpt is the end of a text, in which programs say why they end.
func Excerpt(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxShown {
		s = "…" + strings.ToValidUTF8(s[len(s)-maxShown:], "")
	}
	return s
}
