package jsonata

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
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
