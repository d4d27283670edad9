// Package syntax reads JSONata: from a text to a tree of nodes, or to an [Error] that
// names the place and what to write instead.
package syntax

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Node is a part of an expression.
type Node interface{ Shared() *Common }

// Common is what every node may have: brackets can follow anything.
type Common struct {
	At      int    // offset of what errors are about
	Filters []Node // predicates on the value of the node
	Stages  []Node // predicates of a step in a path: they see one item's values at a time
	Group   *Group
	Keep    bool // "[]" follows: a sequence of one stays an array
}

// Shared gives what every node has.
func (c *Common) Shared() *Common { return c }

type (
	// Path is a.b.c: each step is evaluated for each item that the step
	// before it gave.
	Path struct {
		Common
		Steps         []Node
		KeepSingleton bool // a step has "[]"
	}
	// Name is a field. Outside of a path it is a path of one step.
	Name struct {
		Common
		Name string
	}
	// Variable is $name; "" is the context, "$" the root.
	Variable struct {
		Common
		Name     string
		Assigned bool // somewhere in the expression: who checks it says so
	}
	// Wildcard is *.
	Wildcard struct{ Common }
	// Descendants is **.
	Descendants struct{ Common }

	// String is a text.
	String struct {
		Common
		Text string
	}
	// Number is a number.
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
		// Whole: as the first or last step of a path, the array stays one item
		// instead of being flattened into the items around it.
		Whole bool
	}
	// Range is from..to, in an array.
	Range struct {
		Common
		From, To Node
	}
	// Object is {…} by itself; after another node it is that node's Group.
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
		Condition, Then, Otherwise Node // otherwise may be nil
	}

	// Call is f(a, b). A nil argument is a "?": the call is partial then.
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
		Signature []Param // nil if it takes any arguments
		Body      Node
	}
	// Pattern is /…/.
	Pattern struct {
		Common
		Regex *Regex
	}
	// Sort is the step ^(…) of a path.
	Sort struct {
		Common
		Terms []SortTerm
	}
	// SortTerm is what ^(…) sorts by.
	SortTerm struct {
		By         Node
		Descending bool
	}
)

// Children are the nodes inside a node, in the order written.
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

// Given leaves out the arguments that a partial call leaves open.
func Given(args []Node) []Node {
	var nodes []Node
	for _, a := range args {
		if a != nil {
			nodes = append(nodes, a)
		}
	}
	return nodes
}

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

// LeftOutCall refuses the name of a function that this package does not have.
func LeftOutCall(src string, v *Variable) error {
	feature, hint, ok := LeftOutFunction(v.Name)
	if !ok {
		return nil
	}
	return leftOut(src, v.At, "$"+v.Name, "$"+v.Name+" ("+feature+")", hint)
}

// LeftOutFunction tells which of JSONata's functions this package does not
// have, why, and what to write instead.
func LeftOutFunction(name string) (feature, hint string, ok bool) {
	switch name {
	case "now", "millis":
		return "dates", "let the role put the time into its answer", true
	case "fromMillis", "toMillis":
		return "dates", "dates as 2026-11-22 compare as texts", true
	case "random", "shuffle":
		return "chance: routing is deterministic", "let the role choose", true
	case "eval":
		return "texts as expressions", "write the expression itself", true
	case "formatNumber", "formatInteger", "parseInteger":
		return "pictures of numbers", "$string and $number convert numbers", true
	case "base64encode", "base64decode", "encodeUrl", "encodeUrlComponent", "decodeUrl", "decodeUrlComponent":
		return "encodings", "", true
	}
	return "", "", false
}

// leftOut refuses a part of JSONata that this package does not have.
func leftOut(src string, at int, token, feature, hint string) *Error {
	return &Error{
		Code: CodeLeftOut, Pos: Position(src, at), Token: token, Hint: hint, Cause: ErrLeftOut,
		Message: "the JSONata of uwf has no " + feature,
	}
}
