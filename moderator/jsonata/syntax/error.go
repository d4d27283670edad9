package syntax

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// What an [Error] is about, for errors.Is. The cause of a context that ended
// evaluation can be found in the same way.
var (
	// ErrLeftOut: the expression uses a part of JSONata that this package does
	// not have. Only Parse says so.
	ErrLeftOut = errors.New("left out of the JSONata of uwf")
	// ErrLimit: the expression is too long or too deep, or its evaluation went
	// beyond its bounds.
	ErrLimit = errors.New("limit reached")
)

// Codes beside those of JSONata, also of evaluation.
const (
	CodeLeftOut        = "U1001" // a part of JSONata that is left out
	CodeFunctionResult = "U1002" // the result is a function
	CodeRegex          = "U1003" // a regular expression that cannot be read
	CodeTooLong        = "U2001" // the expression is too long
	CodeTooDeep        = "U2002" // expression or values are nested too deeply
	CodeTooManySteps   = "U2003" // too many steps
	CodeTooLarge       = "U2004" // arrays or texts grow too large
	CodeStopped        = "U2005" // the context ended
)

// Error is an expression that cannot be parsed, or not be evaluated with the
// values that it met.
type Error struct {
	Code    string // JSONata's code, such as "T2001", or one of this package
	Pos     Pos    // what it is about
	Token   string // operator, function or name that it is about, "" if none
	Value   string // the value that surprised, as JSON, shortened; "" if none
	Message string // what is wrong
	Hint    string // what to write instead, "" if unknown

	Cause error // ErrLeftOut, ErrLimit, or the cause of the context's end
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d:%d: %s (%s)", e.Pos.Line, e.Pos.Column, e.Message, e.Code)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Pos is a place in an expression.
type Pos struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // from 1, in characters
}

// Position finds the line and column of an offset.
func Position(src string, offset int) Pos {
	before := src[:min(max(offset, 0), len(src))]
	start := strings.LastIndexByte(before, '\n') + 1
	return Pos{
		Offset: len(before),
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[start:]) + 1,
	}
}
