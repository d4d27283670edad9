// Package jsonata evaluates JSONata expressions, which workflows use as conditions of transitions. It
// implements JSONata 2 without the parts that conditions don't need. Evaluation is bounded, because
// conditions are untrusted and must not hang or crash the engine.
//
// # Supported
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
//	patterns        /…/, /…/im: regular expressions, which are also functions
//	$string …       string length substring substringBefore substringAfter
//	                uppercase lowercase trim pad contains split join replace match
//	$number …       number abs floor ceil round power sqrt formatBase
//	$sum …          sum max min average
//	$boolean …      boolean not exists type error assert
//	$count …        count append reverse distinct zip sort
//	$map …          map filter reduce single each sift
//	$keys …         keys lookup merge spread
//
// # Not supported
//
//	joins                    @ and #
//	the parent operator      %
//	transforms               |…|…|
//	dates                    $now $millis $toMillis $fromMillis
//	randomness               $random $shuffle: routing is deterministic
//	texts as expressions     $eval
//	number formatting        $formatNumber $formatInteger $parseInteger
//	encodings                $base64encode $encodeUrl and similar
//
// [Parse] rejects these by name and position, as well as calls of functions that don't exist. An expression
// that parses can therefore fail only because of its values. [Expr.Reads] returns the parts of the input that
// it can use.
//
// # Bounds
//
// [Options] bounds an evaluation in steps, depth, items and bytes. These are counted rather than timed, so an
// expression gives the same result on every machine. A tail call doesn't increase the depth.
//
// Regular expressions are RE2 (package regexp), without lookaround and backreferences, so that matching takes
// linear time. Each character examined costs steps.
//
// # Values
//
// Values are JSON values in Go: nil, bool, int64 (or int, uint64), float64, json.Number, string, []any,
// map[string]any, and *[Object] where the order of members matters. Numbers are doubles, as in JSONata. A
// computed result is an int64 if it is an exact integer, otherwise a float64. Parts of the input are returned
// unchanged and must not be modified.
//
// The members of a map are visited in the order of their keys; those of an Object and of {…} in source order.
// (JavaScript moves integer keys to the front; this package doesn't.)
//
// # Differences
//
// An infinite result, such as 1/0, is an error when it is compared or returned. JSONata continues with
// infinity, which could make a condition true by accident. A path can continue after a predicate on an array
// constructor ([{"a":1}][0].a is 1); in JSONata it has no value.
//
// A regular expression applies only to texts, and the position of a match counts characters, as in
// $substring; JSONata counts UTF-16 units. The pattern of $match, $replace and $split must be a regular
// expression, not an equivalent function.
package jsonata

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// Expr is a parsed expression. It is immutable and safe for concurrent use.
type Expr struct {
	src       string
	root      syntax.Node
	functions map[string]*function // functions that it names
	unbound   []Name               // see Reads; only their offsets are set
	// contextual means that the expression uses a function that takes the context as a value.
	contextual bool
}

// Parse parses an expression. It rejects unsupported parts of JSONata ([ErrLeftOut]), unknown functions, and
// calls with a wrong number of arguments. The error is an *[Error].
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
	// Error is a parse or evaluation error. Every error of this package is an *Error.
	Error = syntax.Error
	// Pos is a position in an expression.
	Pos = syntax.Pos
)

// Causes of an [Error], for errors.Is. The cause of a canceled context is available in the same way.
var (
	ErrLeftOut = syntax.ErrLeftOut
	ErrLimit   = syntax.ErrLimit
)

// Costs in steps, chosen so that each step takes about the same time.
const (
	stepsPerCall   = 5
	stepsPerKey    = 10 // a map entry
	stepsPerObject = 10
)

// stepsPerLook is the number of steps between checks of the context.
const stepsPerLook = 1 << 10

// site is an evaluation at a position in the expression, for errors.
type site struct {
	e     *evaluator
	where int
	token string // the operator, function or name at this position
}

func (e *evaluator) at(offset int, token string) site { return site{e, offset, token} }

// fail returns an error about this position.
func (s site) fail(code, format string, args ...any) *Error {
	return &Error{
		Code: code, Pos: syntax.Position(s.e.src, s.where), Token: s.token,
		Message: fmt.Sprintf(format, args...),
	}
}

func (s site) spend(steps int) error  { return s.e.spend(s.where, steps) }
func (s site) deep(depth int) error   { return s.e.deep(s.where, depth) }
func (s site) grow(items int) error   { return s.e.grow(s.where, items) }
func (s site) write(length int) error { return s.e.write(s.where, length) }

// spend charges steps.
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

// deep checks the depth of expressions or values.
func (e *evaluator) deep(at, depth int) error {
	if depth > e.limits.MaxDepth {
		return e.limit(at, syntax.CodeTooDeep, "expression or value nested more than %d levels deep", e.limits.MaxDepth)
	}
	return nil
}

// grow charges items of arrays and objects before they are created.
func (e *evaluator) grow(at, items int) error {
	e.items += items
	if e.items > e.limits.MaxItems {
		return e.limit(at, syntax.CodeTooLarge, "the evaluation creates arrays with more than %d items", e.limits.MaxItems)
	}
	return nil
}

// write charges bytes of text.
func (e *evaluator) write(at, length int) error {
	e.bytes += length
	if e.bytes > e.limits.MaxBytes {
		return e.limit(at, syntax.CodeTooLarge, "the evaluation creates more than %d bytes of text", e.limits.MaxBytes)
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
