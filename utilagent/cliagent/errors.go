package cliagent

import (
	"errors"
	"strings"

	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// ErrCannotFork is what [Adapter.Command] returns for a copy of a session that the
// installed version cannot make: the step then starts over with the whole prompt.
var ErrCannotFork = errors.New("this version cannot copy a session")

// Error is why a program could not do a step's work, for a person.
type Error struct {
	Program string
	Kind    errorkind.Kind
	Text    string
	Hint    string   // what to type; "" if nothing helps
	Held    []string // more hints, about the confinement
	Logs    string   // where both streams are kept; "" if nowhere
}

// Error implements error: what and why.
func (e *Error) Error() string { return e.Text }

// OfMachine implements what [protocol.OfMachine] asks for.
func (e *Error) OfMachine() bool { return e.Kind == NotInstalled || e.Kind == errorkind.Auth }

// Hints are what to do about it.
func (e *Error) Hints() []string {
	var hints []string
	if e.Hint != "" {
		hints = append(hints, e.Hint)
	}
	hints = append(hints, e.Held...)
	if e.Logs != "" {
		hints = append(hints, "all that it printed is in "+e.Logs)
	}
	return hints
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
