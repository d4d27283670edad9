package jsonata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/suggest"
)

// check finds what can never work, whatever the values are, and resolves the
// names of functions.
func check(x *Expr, assigned map[string]bool) error {
	c := &checker{src: x.src, assigned: assigned}
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
	unbound  []Name          // variables that are neither assigned nor functions; only their offsets
	// values counts functions that are used as values: only then can a field of
	// an object that the expression makes be called.
	values int
	// contextual counts those that use the context.
	contextual int
}

func (c *checker) fail(at int, code, token, format string, args ...any) *Error {
	return &Error{Code: code, Pos: position(c.src, at), Token: token, Message: fmt.Sprintf(format, args...)}
}

// collect counts functions as values, and bounds the depth of the tree for all
// who walk it after.
func (c *checker) collect(n node, depth int) error {
	if depth > maxTree {
		return tooDeep(c.src, n.shared().at)
	}
	switch n := n.(type) {
	case *variableNode:
		c.name(n, 1)
	case *regexNode:
		c.values++
	case *lambdaNode:
		c.values++
		if slices.ContainsFunc(n.signature, func(p param) bool { return p.context }) {
			c.contextual++
		}
	case *callNode:
		c.name(n.callee, -1)
	case *applyNode:
		c.name(n.right, -1)
	}
	for _, inner := range children(n) {
		if err := c.collect(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// name counts a node if it is the name of a function.
func (c *checker) name(n node, count int) {
	v, ok := n.(*variableNode)
	if !ok || builtins[v.name].run == nil {
		return
	}
	c.values += count
	if strings.Contains(builtins[v.name].params, "-") {
		c.contextual += count
	}
}

func (c *checker) check(n node) error {
	var err error
	switch n := n.(type) {
	case *variableNode:
		err = c.variable(n)
	case *callNode:
		err = c.callee(n)
	case *applyNode:
		if call, ok := n.right.(*callNode); ok {
			return c.piped(n, call)
		}
	}
	if err != nil {
		return err
	}
	return c.inside(n)
}

func (c *checker) inside(n node) error {
	for _, inner := range children(n) {
		if err := c.check(inner); err != nil {
			return err
		}
	}
	return nil
}

// variable resolves the name of a function. A variable of the same name wins
// where it is in scope, which evaluation finds out.
func (c *checker) variable(v *variableNode) error {
	if v.name == "" || v.name == "$" {
		return nil
	}
	v.assigned, v.builtin = c.assigned[v.name], builtin(v.name)
	if v.assigned || v.builtin != nil {
		return nil
	}
	if err := leftOutCall(c.src, v); err != nil {
		return err
	}
	c.unbound = append(c.unbound, Name{v.name, Pos{Offset: v.at}})
	return nil
}

// callee checks what is called. Bindings hold JSON values, so a variable that
// is neither assigned nor a function of ours can never be called.
func (c *checker) callee(n *callNode) error { return c.call(n, len(n.args)) }

// piped checks "left ~> f(b)", where left is the first argument of f.
func (c *checker) piped(n *applyNode, call *callNode) error {
	if err := c.call(call, len(call.args)+1); err != nil {
		return err
	}
	if err := c.check(n.left); err != nil {
		return err
	}
	return c.inside(call)
}

func (c *checker) call(n *callNode, args int) error {
	if len(n.callee.shared().filters) > 0 {
		return nil
	}
	switch callee := n.callee.(type) {
	case *variableNode:
		return c.namedCall(n, callee, args)
	case *pathNode:
		return c.pathCall(n, callee)
	case *stringNode, *numberNode, *constNode, *arrayNode, *objectNode:
		return c.notCallable(n, "only a function can be called")
	}
	return nil
}

func (c *checker) namedCall(n *callNode, v *variableNode, args int) error {
	if err := c.variable(v); err != nil || v.assigned {
		return err
	}
	if v.builtin == nil {
		e := c.notCallable(n, "there is no function $"+shorten(v.name, maxShown))
		e.Token = "$" + v.name
		e.Hint = didYouMean(v.name)
		return e
	}
	if n.partial {
		return nil
	}
	least, most := v.builtin.arity()
	if args < least || most >= 0 && args > most {
		return c.fail(n.at, "T0410", "$"+v.name, "$%s takes %s, not %d", v.name, plural(least, most), args)
	}
	return nil
}

// pathCall is a call without a dollar sign, or of something in a field.
func (c *checker) pathCall(n *callNode, path *pathNode) error {
	if c.values > 0 {
		return nil
	}
	if err := missingDollar(c.src, n, path); err != nil {
		return err
	}
	name, ok := path.steps[0].(*nameNode)
	if !ok || len(path.steps) > 1 {
		return c.notCallable(n, "a value cannot be called, only a function")
	}
	e := c.notCallable(n, quote(shorten(name.name, maxShown))+" is a field and cannot be called")
	e.Token, e.Hint = name.name, didYouMean(name.name)
	return e
}

// missingDollar is the error if the name of a function is called without its
// dollar sign, nil if something else is called.
func missingDollar(src string, n *callNode, path *pathNode) error {
	name, ok := path.steps[0].(*nameNode)
	if !ok || len(path.steps) > 1 {
		return nil
	}
	if _, _, isLeftOut := leftOutFunction(name.name); !isLeftOut && builtins[name.name].run == nil {
		return nil
	}
	e := &Error{
		Code: "T1005", Pos: position(src, n.at), Token: name.name,
		Message: quote(name.name) + " is a field and cannot be called", Hint: "did you mean $" + name.name + "?",
	}
	if n.partial {
		e.Code = "T1007"
	}
	return e
}

func (c *checker) notCallable(n *callNode, message string) *Error {
	code := "T1006"
	if n.partial {
		code = "T1008"
	}
	return c.fail(n.at, code, "", "%s", message)
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
