// Package jsonata evaluates JSONata expressions: the conditions of transition
// lists. It is JSONata 2 without what a condition does not need, and with
// bounds, because a condition comes from a stranger and must neither hang nor
// crash the engine.
//
// # What there is
//
//	paths           a.b, `a b`.c, "a b".c, $, $$, *, **
//	                map over arrays, flatten, unwrap a sequence of one
//	predicates      a[0], a[-1], a[x = 1], a[[0..2]], a[] (keep the array)
//	sorting         list^(a, >b)
//	constructors    [1, 2], [1..9], {"k": v}, list{key: value} (group by key)
//	operators       + - * / % & = != < <= > >= and or in ~> ?? ?: c ? x : y
//	blocks          ($x := 1; $x + 1), /* comments */
//	functions       function($x){$x + 1}, λ($x)<n:n>{$x + 1}, as values,
//	                $f(1, ?) (partial), $f ~> $g (composed)
//	patterns        /…/, /…/im: regular expressions, which are functions too
//	$string …       string length substring substringBefore substringAfter
//	                uppercase lowercase trim pad contains split join replace match
//	$number …       number abs floor ceil round power sqrt formatBase
//	$sum …          sum max min average
//	$boolean …      boolean not exists type error assert
//	$count …        count append reverse distinct zip sort
//	$map …          map filter reduce single each sift
//	$keys …         keys lookup merge spread
//
// # What there is not
//
//	joins                    @ and #
//	the parent operator      %
//	transforms               |…|…|
//	dates                    $now $millis $toMillis $fromMillis
//	chance                   $random $shuffle: routing is deterministic
//	texts as expressions     $eval
//	pictures of numbers      $formatNumber $formatInteger $parseInteger
//	encodings                $base64encode $encodeUrl and their kin
//
// [Parse] refuses all of these by name and position, and also calls of
// functions that do not exist, so an expression that parses can only fail
// because of the values that it meets. [Expr.Reads] tells which parts of the
// input it can look at.
//
// # Bounds
//
// An evaluation is bounded in steps, depth, items and bytes, see [Options]. They
// are counted, not timed: an expression gives the same on every machine. A call
// that is the last thing a function does takes no depth.
//
// Regular expressions are RE2 (package regexp), whose time grows with the text
// and no faster: without lookaround and backreferences. Each character that one
// looks at costs steps.
//
// # Values
//
// Values are JSON values in Go: nil, bool, int64 (or int, uint64), float64,
// json.Number, string, []any, map[string]any, and *[Object] where the order of
// members matters. Numbers are doubles, as in JSONata. A computed result is an
// int64 if it is whole and exact, else a float64; parts of the input come back
// as they went in and must not be changed.
//
// Members of a map are visited in the order of their keys, those of an Object
// and of {…} in the order written. (JavaScript moves keys that look like whole
// numbers to the front; this package does not.)
//
// # Differences
//
// An infinite result, as of 1/0, is an error wherever it is compared or
// returned; JSONata goes on with infinity, and a condition would be true for no
// reason. A path may go on after a predicate on an array constructor
// ([{"a":1}][0].a is 1); JSONata has nothing there.
//
// A regular expression takes a text only, and the places of a match are in
// characters, as in $substring; JSONata counts UTF-16 units. A pattern of $match,
// $replace and $split must be one, not a function that does the same.
package jsonata

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// Expr is a parsed expression. It is immutable: many goroutines may evaluate it.
type Expr struct {
	src       string
	root      syntax.Node
	functions map[string]*function // that it names
	unbound   []Name               // see Reads; only their offsets
	// contextual: there are functions as values that use the context.
	contextual bool
}

// Parse reads an expression, and refuses what this package leaves out
// ([ErrLeftOut]), functions that do not exist, and calls with too few or too
// many arguments. The error is an *[Error].
func Parse(src string) (*Expr, error) {
	root, assigned, err := syntax.Parse(src)
	if err != nil {
		return nil, err
	}
	x := &Expr{src: src, root: root, functions: map[string]*function{}}
	if err := check(x, assigned); err != nil {
		return nil, err
	}
	return x, nil
}

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

// Prices in steps, so that a step takes about as long whatever it does.
const (
	stepsPerCall   = 5
	stepsPerKey    = 10 // an entry of a map of Go
	stepsPerObject = 10
)

// stepsPerLook is how often the context is looked at.
const stepsPerLook = 1 << 10

// site is an evaluation at a place of the expression: who fails names it.
type site struct {
	e     *evaluator
	where int
	token string // what the place is about: an operator, a function
}

func (e *evaluator) at(offset int, token string) site { return site{e, offset, token} }

// fail is an error about the place.
func (s site) fail(code, format string, args ...any) *Error {
	return &Error{
		Code: code, Pos: syntax.Position(s.e.src, s.where), Token: s.token,
		Message: fmt.Sprintf(format, args...),
	}
}

// failValue is an error about a value.
func (s site) failValue(v any, code, format string, args ...any) *Error {
	err := s.fail(code, format, args...)
	err.Value = excerpt(v)
	return err
}

func (s site) spend(steps int) error  { return s.e.spend(s.where, steps) }
func (s site) deep(depth int) error   { return s.e.deep(s.where, depth) }
func (s site) grow(items int) error   { return s.e.grow(s.where, items) }
func (s site) write(length int) error { return s.e.write(s.where, length) }

// spend accounts for steps.
func (e *evaluator) spend(at, steps int) error {
	before := e.steps
	e.steps += steps
	if e.steps > e.limits.MaxSteps {
		return e.limit(at, syntax.CodeTooManySteps, "the evaluation takes more than %d steps", e.limits.MaxSteps)
	}
	if before/stepsPerLook != e.steps/stepsPerLook && e.ctx.Err() != nil {
		return e.stopped(at)
	}
	return nil
}

// deep bounds how deep expressions or values are nested.
func (e *evaluator) deep(at, depth int) error {
	if depth > e.limits.MaxDepth {
		return e.limit(at, syntax.CodeTooDeep, "expression or value are nested more than %d levels deep", e.limits.MaxDepth)
	}
	return nil
}

// grow accounts for items of arrays and objects, before they are made.
func (e *evaluator) grow(at, items int) error {
	e.items += items
	if e.items > e.limits.MaxItems {
		return e.limit(at, syntax.CodeTooLarge, "the evaluation makes arrays with more than %d items", e.limits.MaxItems)
	}
	return nil
}

// write accounts for texts.
func (e *evaluator) write(at, length int) error {
	e.bytes += length
	if e.bytes > e.limits.MaxBytes {
		return e.limit(at, syntax.CodeTooLarge, "the evaluation makes more than %d bytes of text", e.limits.MaxBytes)
	}
	return nil
}

func (e *evaluator) limit(at int, code, format string, limit int) error {
	err := e.at(at, "").fail(code, format, limit)
	err.Cause = ErrLimit
	return err
}

func (e *evaluator) stopped(at int) error {
	err := e.at(at, "").fail(syntax.CodeStopped, "the evaluation was stopped: %s", context.Cause(e.ctx))
	err.Cause = context.Cause(e.ctx)
	return err
}
