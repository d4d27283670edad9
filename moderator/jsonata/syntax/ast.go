// Package syntax parses JSONata expressions to a tree of nodes, or returns an [Error] with the position and a
// suggestion.
package syntax

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Node is a node of the syntax tree.
type Node interface{ Shared() *Common }

// Common holds the fields of every node, because brackets can follow any expression.
type Common struct {
	At      int    // offset for errors
	Filters []Node // predicates on the node's value
	Stages  []Node // predicates of a path step: each applies to the values of one item
	Group   *Group
	Keep    bool // followed by "[]": a sequence of one stays an array
}

// Shared returns the common fields.
func (c *Common) Shared() *Common { return c }

type (
	// Path is a.b.c. Each step is evaluated for each item of the previous step's result.
	Path struct {
		Common
		Steps         []Node
		KeepSingleton bool // a step has "[]"
	}
	// Name is a field. Outside a path it acts as a path with one step.
	Name struct {
		Common
		Name string
	}
	// Variable is $name; "" is the context, "$" the root.
	Variable struct {
		Common
		Name     string
		Assigned bool // assigned somewhere in the expression; set by the checker
	}
	// Wildcard is the operator *.
	Wildcard struct{ Common }
	// Descendants is the operator **.
	Descendants struct{ Common }

	// String is a literal text.
	String struct {
		Common
		Text string
	}
	// Number is a literal number.
	Number struct {
		Common
		Value float64
	}
	// Const is true, false or null.
	Const struct {
		Common
		Value any
	}

	// Array is […].
	Array struct {
		Common
		Items []Node
		// Whole means that the array isn't flattened as the first or last step of a path.
		Whole bool
	}
	// Range is from..to, in an array.
	Range struct {
		Common
		From, To Node
	}
	// Object is {…} on its own; after another node it is that node's Group.
	Object struct {
		Common
		Group
	}
	// Group is {key: value, …}.
	Group struct {
		At    int
		Pairs []Pair
	}
	// Pair is key: value.
	Pair struct{ Key, Value Node }

	// Block is (a; b; c).
	Block struct {
		Common
		Exprs []Node
		whole bool // see Array
	}
	// Bind is $name := value.
	Bind struct {
		Common
		Name  string
		Value Node
	}

	// Negate is -operand.
	Negate struct {
		Common
		Operand Node
	}
	// Binary is an operator between two operands.
	Binary struct {
		Common
		Op          string
		Left, Right Node
	}
	// Condition is condition ? then : otherwise.
	Condition struct {
		Common
		Condition, Then, Otherwise Node // otherwise can be nil
	}

	// Call is f(a, b). A nil argument stands for "?", which makes the call partial.
	Call struct {
		Common
		Function Node
		Args     []Node
		Partial  bool
	}
	// Apply is value ~> f or value ~> f(b).
	Apply struct {
		Common
		Left, Right Node
	}
	// Lambda is function($a, $b){body}.
	Lambda struct {
		Common
		Params    []string
		Signature []Param // nil accepts any arguments
		Body      Node
	}
	// Pattern is /…/.
	Pattern struct {
		Common
		Regex *Regex
	}
	// Sort is the path step ^(…).
	Sort struct {
		Common
		Terms []SortTerm
	}
	// SortTerm is a term of ^(…).
	SortTerm struct {
		By         Node
		Descending bool
	}
)

// Children returns the child nodes in source order.
func Children(n Node) []Node {
	var inner []Node
	switch n := n.(type) {
	case *Path:
		inner = append(inner, n.Steps...)
	case *Array:
		inner = append(inner, n.Items...)
	case *Range:
		inner = append(inner, n.From, n.To)
	case *Object:
		inner = n.Group.appendTo(inner)
	case *Block:
		inner = append(inner, n.Exprs...)
	case *Bind:
		inner = append(inner, n.Value)
	case *Negate:
		inner = append(inner, n.Operand)
	case *Binary:
		inner = append(inner, n.Left, n.Right)
	case *Condition:
		inner = append(inner, n.Condition, n.Then)
		if n.Otherwise != nil {
			inner = append(inner, n.Otherwise)
		}
	case *Call:
		inner = append(append(inner, n.Function), Given(n.Args)...)
	case *Apply:
		inner = append(inner, n.Left, n.Right)
	case *Lambda:
		inner = append(inner, n.Body)
	case *Sort:
		for _, t := range n.Terms {
			inner = append(inner, t.By)
		}
	}
	c := n.Shared()
	inner = append(append(inner, c.Filters...), c.Stages...)
	if c.Group != nil {
		inner = c.Group.appendTo(inner)
	}
	return inner
}

func (g *Group) appendTo(nodes []Node) []Node {
	for _, p := range g.Pairs {
		nodes = append(nodes, p.Key, p.Value)
	}
	return nodes
}

// Given returns the arguments that a partial call doesn't leave open.
func Given(args []Node) []Node {
	var nodes []Node
	for _, a := range args {
		if a != nil {
			nodes = append(nodes, a)
		}
	}
	return nodes
}

// Causes of an [Error], for errors.Is. The cause of a canceled context is available in the same way.
var (
	// ErrLeftOut means that the expression uses an unsupported part of JSONata. Only Parse returns it.
	ErrLeftOut = errors.New("not supported by uwf's JSONata")
	// ErrLimit means that the expression is too long or too deeply nested, or that its evaluation exceeded a
	// bound.
	ErrLimit = errors.New("limit reached")
)

// Error codes in addition to those of JSONata, including those of evaluation.
const (
	CodeLeftOut        = "U1001" // an unsupported part of JSONata
	CodeFunctionResult = "U1002" // the result is a function
	CodeRegex          = "U1003" // an invalid regular expression
	CodeTooLong        = "U2001" // the expression is too long
	CodeTooDeep        = "U2002" // the expression or a value is too deeply nested
	CodeTooManySteps   = "U2003" // too many steps
	CodeTooLarge       = "U2004" // arrays or texts are too large
	CodeStopped        = "U2005" // the context was canceled
)

// Error is a parse or evaluation error.
type Error struct {
	Code    string // a JSONata code such as "T2001", or one of this package
	Pos     Pos    // position of the error
	Token   string // operator, function or name at fault; "" if none
	Message string // description of the error
	Hint    string // suggested replacement, "" if unknown

	Cause error // ErrLeftOut, ErrLimit, or the cause of the context's cancellation
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%d:%d: %s (%s)", e.Pos.Line, e.Pos.Column, e.Message, e.Code)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

func (e *Error) Unwrap() error { return e.Cause }

// Pos is a position in an expression.
type Pos struct {
	Offset int // in bytes, from 0
	Line   int // from 1
	Column int // from 1, in characters
}

// Position returns the line and column of an offset.
func Position(src string, offset int) Pos {
	before := src[:min(max(offset, 0), len(src))]
	start := strings.LastIndexByte(before, '\n') + 1
	return Pos{
		Offset: len(before),
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[start:]) + 1,
	}
}

// LeftOutCall returns an error if the variable names an unsupported function.
func LeftOutCall(src string, v *Variable) error {
	feature, hint, ok := LeftOutFunction(v.Name)
	if !ok {
		return nil
	}
	return leftOut(src, v.At, "$"+v.Name, "$"+v.Name+" ("+feature+")", hint)
}

// LeftOutFunction reports whether a function of JSONata is unsupported, with the reason and a suggested
// replacement.
func LeftOutFunction(name string) (feature, hint string, ok bool) {
	switch name {
	case "now", "millis":
		return "dates", "let the role answer with the time", true
	case "fromMillis", "toMillis":
		return "dates", "dates as 2026-11-22 compare as texts", true
	case "random", "shuffle":
		return "randomness: routing is deterministic", "let the role choose", true
	case "eval":
		return "strings as expressions", "write the expression itself", true
	case "formatNumber", "formatInteger", "parseInteger":
		return "number formats", "$string and $number convert numbers", true
	case "base64encode", "base64decode", "encodeUrl", "encodeUrlComponent", "decodeUrl", "decodeUrlComponent":
		return "encodings", "", true
	}
	return "", "", false
}

// leftOut returns the error for an unsupported part of JSONata.
func leftOut(src string, at int, token, feature, hint string) *Error {
	return &Error{
		Code: CodeLeftOut, Pos: Position(src, at), Token: token, Hint: hint, Cause: ErrLeftOut,
		Message: "uwf's JSONata does not support " + feature,
	}
}
