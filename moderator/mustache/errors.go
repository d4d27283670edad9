package mustache

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooLarge means that a template would render more than the bounds allow.
var ErrTooLarge = errors.New("renders too much")

// SyntaxError is a template that cannot be read.
type SyntaxError struct {
	Line, Column int // in the template, from 1; columns count characters
	Message      string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// MissingError is a variable that has no value.
type MissingError struct {
	Name         string // the whole path
	Line, Column int    // of the tag in the template, from 1
	Nearest      []string
	Known        []string // what exists at that place, sorted; at most a few
}

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message())
}

// Message is the error without its place.
func (e *MissingError) Message() string {
	text := fmt.Sprintf("variable %q does not exist", e.Name)
	switch {
	case len(e.Nearest) > 0:
		return text + "; did you mean " + quoteList(e.Nearest) + "?"
	case len(e.Known) > 0:
		return text + "; there is " + quoteList(e.Known)
	}
	return text
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
