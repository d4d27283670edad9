package jsonata

import "github.com/united-workforce/uwf/moderator/jsonata/syntax"

type (
	// Error is an expression that cannot be parsed, or not be evaluated with the
	// values that it met. Every error of this package is an *Error.
	Error = syntax.Error
	// Pos is a place in an expression.
	Pos = syntax.Pos
)

// What an [Error] is about, for errors.Is. The cause of a context that ended
// evaluation can be found in the same way.
var (
	ErrLeftOut = syntax.ErrLeftOut
	ErrLimit   = syntax.ErrLimit
)
