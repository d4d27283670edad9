package jsonata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
	"github.com/united-workforce/uwf/util/suggest"
)

// check finds what can never work, whatever the values are, and resolves the
// names of functions.
func check(x *Expr, assigned map[string]bool) error {
	c := &checker{src: x.src, assigned: assigned, functions: x.functions}
	if err := c.collect(x.root, 1); err != nil {
		return err
	}
	if err := c.check(x.root); err != nil {
		return err
	}
	x.unbound, x.contextual = c.unbound, c.contextual > 0
	return nil
}

type checker struct {
	src      string
	assigned map[string]bool // variables with a ":=" somewhere
	// functions are those that the expression names.
	functions map[string]*function
	unbound   []Name // variables that are neither assigned nor functions; only their offsets
	// values counts functions that are used as values: only then can a field of
	// an object that the expression makes be called.
	values int
	// contextual counts those that use the context.
	contextual int
}

func (c *checker) fail(at int, code, token, format string, args ...any) *Error {
	return &Error{Code: code, Pos: syntax.Position(c.src, at), Token: token, Message: fmt.Sprintf(format, args...)}
}

// collect counts functions as values, and bounds the depth of the tree for all
// who walk it after.
func (c *checker) collect(n syntax.Node, depth int) error {
	if depth > syntax.MaxTree {
		return syntax.TooDeep(c.src, n.Shared().At)
	}
	switch n := n.(type) {
	case *syntax.Variable:
		c.name(n, 1)
	case *syntax.Pattern:
		c.values++
	case *syntax.Lambda:
		c.values++
		if slices.ContainsFunc(n.Signature, func(p syntax.Param) bool { return p.Context }) {
			c.contextual++
		}
	case *syntax.Call:
		c.name(n.Function, -1)
	case *syntax.Apply:
		c.name(n.Right, -1)
	}
	for _, inner := range syntax.Children(n) {
		if err := c.collect(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// name counts a node if it is the name of a function.
func (c *checker) name(n syntax.Node, count int) {
	v, ok := n.(*syntax.Variable)
	if !ok || builtins[v.Name].run == nil {
		return
	}
	c.values += count
	if strings.Contains(builtins[v.Name].params, "-") {
		c.contextual += count
	}
}

func (c *checker) check(n syntax.Node) error {
	var err error
	switch n := n.(type) {
	case *syntax.Variable:
		err = c.variable(n)
	case *syntax.Call:
		err = c.callee(n)
	case *syntax.Apply:
		if call, ok := n.Right.(*syntax.Call); ok {
			return c.piped(n, call)
		}
	}
	if err != nil {
		return err
	}
	return c.inside(n)
}

func (c *checker) inside(n syntax.Node) error {
	for _, inner := range syntax.Children(n) {
		if err := c.check(inner); err != nil {
			return err
		}
	}
	return nil
}

// variable resolves the name of a function. A variable of the same name wins
// where it is in scope, which evaluation finds out.
func (c *checker) variable(v *syntax.Variable) error {
	if v.Name == "" || v.Name == "$" {
		return nil
	}
	v.Assigned = c.assigned[v.Name]
	if c.functions[v.Name] == nil {
		if f := builtin(v.Name); f != nil {
			c.functions[v.Name] = f
		}
	}
	if v.Assigned || c.functions[v.Name] != nil {
		return nil
	}
	if err := syntax.LeftOutCall(c.src, v); err != nil {
		return err
	}
	c.unbound = append(c.unbound, Name{v.Name, Pos{Offset: v.At}})
	return nil
}

// callee checks what is called. Bindings hold JSON values, so a variable that
// is neither assigned nor a function of ours can never be called.
func (c *checker) callee(n *syntax.Call) error { return c.call(n, len(n.Args)) }

// piped checks "left ~> f(b)", where left is the first argument of f.
func (c *checker) piped(n *syntax.Apply, call *syntax.Call) error {
	if err := c.call(call, len(call.Args)+1); err != nil {
		return err
	}
	if err := c.check(n.Left); err != nil {
		return err
	}
	return c.inside(call)
}

func (c *checker) call(n *syntax.Call, args int) error {
	if len(n.Function.Shared().Filters) > 0 {
		return nil
	}
	switch callee := n.Function.(type) {
	case *syntax.Variable:
		return c.namedCall(n, callee, args)
	case *syntax.Path:
		return c.pathCall(n, callee)
	case *syntax.String, *syntax.Number, *syntax.Const, *syntax.Array, *syntax.Object:
		return c.notCallable(n, "only a function can be called")
	}
	return nil
}

func (c *checker) namedCall(n *syntax.Call, v *syntax.Variable, args int) error {
	if err := c.variable(v); err != nil || v.Assigned {
		return err
	}
	f := c.functions[v.Name]
	if f == nil {
		e := c.notCallable(n, "there is no function $"+syntax.Shorten(v.Name, syntax.MaxShown))
		e.Token = "$" + v.Name
		e.Hint = didYouMean(v.Name)
		return e
	}
	if n.Partial {
		return nil
	}
	least, most := f.arity()
	if args < least || most >= 0 && args > most {
		return c.fail(n.At, "T0410", "$"+v.Name, "$%s takes %s, not %d", v.Name, plural(least, most), args)
	}
	return nil
}

// pathCall is a call without a dollar sign, or of something in a field.
func (c *checker) pathCall(n *syntax.Call, path *syntax.Path) error {
	if c.values > 0 {
		return nil
	}
	if err := missingDollar(c.src, n, path); err != nil {
		return err
	}
	name, ok := path.Steps[0].(*syntax.Name)
	if !ok || len(path.Steps) > 1 {
		return c.notCallable(n, "a value cannot be called, only a function")
	}
	e := c.notCallable(n, syntax.Quote(syntax.Shorten(name.Name, syntax.MaxShown))+" is a field and cannot be called")
	e.Token, e.Hint = name.Name, didYouMean(name.Name)
	return e
}

// missingDollar is the error if the name of a function is called without its
// dollar sign, nil if something else is called.
func missingDollar(src string, n *syntax.Call, path *syntax.Path) error {
	name, ok := path.Steps[0].(*syntax.Name)
	if !ok || len(path.Steps) > 1 {
		return nil
	}
	if _, _, isLeftOut := syntax.LeftOutFunction(name.Name); !isLeftOut && builtins[name.Name].run == nil {
		return nil
	}
	e := &Error{
		Code: "T1005", Pos: syntax.Position(src, n.At), Token: name.Name,
		Message: syntax.Quote(name.Name) + " is a field and cannot be called", Hint: "did you mean $" + name.Name + "?",
	}
	if n.Partial {
		e.Code = "T1007"
	}
	return e
}

func (c *checker) notCallable(n *syntax.Call, message string) *Error {
	code := "T1006"
	if n.Partial {
		code = "T1008"
	}
	return c.fail(n.At, code, "", "%s", message)
}

func didYouMean(name string) string {
	near := suggest.Nearest(name, slices.Sorted(maps.Keys(builtins)), 1)
	if len(near) == 0 {
		return ""
	}
	return "did you mean $" + near[0] + "?"
}

func plural(least, most int) string {
	noun := "arguments"
	if most == 1 {
		noun = "argument"
	}
	switch {
	case most < 0:
		return fmt.Sprintf("at least %d %s", least, noun)
	case least == most:
		return fmt.Sprintf("%d %s", most, noun)
	case least == 0:
		return fmt.Sprintf("at most %d %s", most, noun)
	}
	return fmt.Sprintf("%d to %d %s", least, most, noun)
}
