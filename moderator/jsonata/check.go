package jsonata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
)

// check finds errors that don't depend on any values, and resolves function names.
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
	// functions holds the functions that the expression names.
	functions map[string]*function
	unbound   []Name // variables that are neither assigned nor functions; only their offsets are set
	// values counts functions used as values. Only if there are any can an expression call a field of an
	// object that it creates.
	values int
	// contextual counts the function values that use the context.
	contextual int
}

func (c *checker) fail(at int, code, token, format string, args ...any) *Error {
	return &Error{Code: code, Pos: syntax.Position(c.src, at), Token: token, Message: fmt.Sprintf(format, args...)}
}

// collect counts function values and bounds the depth of the tree for all later walks.
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

// name updates the counters if a node is the name of a function.
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
		err = c.call(n, len(n.Args))
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

// variable resolves the name of a function. In its scope, a variable of the same name takes precedence;
// evaluation determines that.
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

// piped checks "left ~> f(b)", where left is f's first argument.
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
		return c.notCallable(n, "only functions can be called")
	}
	return nil
}

func (c *checker) namedCall(n *syntax.Call, v *syntax.Variable, args int) error {
	if err := c.variable(v); err != nil || v.Assigned {
		return err
	}
	f := c.functions[v.Name]
	if f == nil {
		e := c.notCallable(n, "unknown function $"+syntax.Shorten(v.Name, syntax.MaxShown))
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

// pathCall checks a call without a dollar sign, or of a field.
func (c *checker) pathCall(n *syntax.Call, path *syntax.Path) error {
	if c.values > 0 {
		return nil
	}
	if err := missingDollar(c.src, n, path); err != nil {
		return err
	}
	name, ok := path.Steps[0].(*syntax.Name)
	if !ok || len(path.Steps) > 1 {
		return c.notCallable(n, "only functions can be called")
	}
	e := c.notCallable(n, syntax.Quote(syntax.Shorten(name.Name, syntax.MaxShown))+" is a field and cannot be called")
	e.Token, e.Hint = name.Name, didYouMean(name.Name)
	return e
}

// missingDollar returns an error if a function is called without its dollar sign, nil for any other callee.
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

// Reads lists the parts of its input that an expression can use, determined without evaluating it. A caller
// can omit the rest of the input, and can warn an author about names that the input will never have.
//
// It can include names that no evaluation reaches, but never omits one that it does: an input without the
// unlisted parts gives the same value.
type Reads struct {
	// Paths lists the paths that start at the input, in source order.
	Paths []Path
	// All means that the expression can use any field: it uses the input as a whole ($, $$, *, **), or
	// computes a field name.
	All bool
	// Unbound lists the variables that are neither assigned nor functions, in source order. Only [Options]
	// can give them a value.
	Unbound []Name
	// Bound lists the paths that start at a variable in Unbound. Their first name is the variable's, without
	// the "$".
	Bound []Path
}

// Path is the leading part of a path in the input that consists of plain names.
type Path struct {
	Names []string
	Pos   Pos
	// Newest is k if the first name is used as name[-k], so that its last k items suffice; otherwise 0.
	Newest int
	// Tested means that the expression tests whether the path has a value ($exists, ??), so a missing value
	// is expected.
	Tested bool
	// Equals is the text that the path is compared with by = or !=, or "".
	Equals string

	bound bool // starts at a variable
}

// Name is a name with its position.
type Name struct {
	Text string
	Pos  Pos
}

// Reads returns the parts of its input that the expression can use.
func (x *Expr) Reads() Reads {
	t := &tracer{tested: map[syntax.Node]bool{}, equals: map[syntax.Node]string{}, contextual: x.contextual,
		functions: x.functions}
	t.use(x.root, true)
	sorting.Stable(t.paths, func(a, b *Path) int { return a.Pos.Offset - b.Pos.Offset })
	r := Reads{All: t.all, Unbound: slices.Clone(x.unbound)}
	c := cursor{src: x.src, pos: syntax.Position(x.src, 0)}
	for _, p := range t.paths {
		p.Pos = c.to(p.Pos.Offset)
		if p.bound {
			r.Bound = append(r.Bound, *p)
		} else {
			r.Paths = append(r.Paths, *p)
		}
	}
	c.pos = syntax.Position(x.src, 0)
	sorting.Func(r.Unbound, func(a, b Name) int { return a.Pos.Offset - b.Pos.Offset })
	for i, n := range r.Unbound {
		r.Unbound[i].Pos = c.to(n.Pos.Offset)
	}
	return r
}

// Newest returns how many of the last items of a field the expression can use. ok is false if the number is
// unknown.
func (r Reads) Newest(field string) (n int, ok bool) {
	if r.All {
		return 0, false
	}
	for _, p := range r.Paths {
		if p.Names[0] != field {
			continue
		}
		if p.Newest == 0 {
			return 0, false
		}
		n = max(n, p.Newest)
	}
	return n, true
}

// cursor converts increasing offsets to positions in a single pass.
type cursor struct {
	src string
	pos Pos
}

func (c *cursor) to(offset int) Pos {
	step := syntax.Position(c.src[c.pos.Offset:], offset-c.pos.Offset)
	if step.Line == 1 {
		step.Column += c.pos.Column - 1
	}
	c.pos = Pos{Offset: offset, Line: c.pos.Line + step.Line - 1, Column: step.Column}
	return c.pos
}

// function is a function value.
type function struct {
	name   string // "$sum"; "" for a function defined in the expression
	params []syntax.Param
	// free means that the function accepts any arguments.
	free bool
	// takes is the number of arguments that a higher-order function passes for each item.
	takes int
	run   func(*call) (any, error)
	regex *syntax.Regex // pattern of a regular expression, otherwise nil
	// hidden functions are omitted from a result instead of causing an error.
	hidden bool
}

// label returns the function's name for messages about its arguments.
func (f *function) label() string { return cmp.Or(f.name, "the function") }

// arity returns the minimum and maximum number of arguments; most is -1 if unbounded.
func (f *function) arity() (least, most int) {
	for _, p := range f.params {
		if !p.Optional && !p.Context {
			least++
		}
		if p.Many || most < 0 {
			most = -1
			continue
		}
		most++
	}
	return least, most
}

// takesContext reports whether a call with this number of arguments uses the context.
func (f *function) takesContext(args int) bool {
	for _, p := range f.params {
		if p.Context {
			return args < len(f.params)
		}
	}
	return false
}

// matcher assigns arguments to parameters, similar to a regular expression over their kinds.
type matcher struct {
	site   site
	params []syntax.Param
	kinds  []byte // kind of each argument
	counts []int  // number of arguments of each parameter
	// furthest argument that no parameter accepted, and the first parameter tried for it (len(params) if none
	// was left)
	arg, param int
	err        error // a bound was reached, because the number of combinations can be large
}

func (m *matcher) match(param, arg int) bool {
	if m.err = m.site.spend(1); m.err != nil {
		return false
	}
	if arg > m.arg {
		m.arg, m.param = arg, param
	}
	if param == len(m.params) {
		return arg == len(m.kinds)
	}
	p := m.params[param]
	n := 0
	for arg+n < len(m.kinds) && strings.IndexByte(p.Kinds, m.kinds[arg+n]) >= 0 && (n == 0 || p.Many) {
		n++
	}
	least := 1
	if p.Optional || p.Context {
		least = 0
	}
	for ; n >= least; n-- {
		m.counts[param] = n
		if m.match(param+1, arg+n) || m.err != nil {
			return m.err == nil
		}
	}
	return false
}

// bind assigns the arguments to the function's parameters.
func (c *call) bind(f *function, args []any, context any) error {
	m := &matcher{site: c.site, params: f.params, kinds: make([]byte, len(args)), counts: make([]int, len(f.params)),
		arg: -1}
	for i, a := range args {
		m.kinds[i] = kindOf(a)
	}
	if !m.match(0, 0) {
		if m.err != nil {
			return m.err
		}
		return c.mismatch(m, args)
	}
	c.args = make([]any, 0, len(f.params))
	next := 0
	for i, p := range f.params {
		if m.counts[i] == 0 {
			arg, err := c.absent(p, len(c.args), context)
			if err != nil {
				return err
			}
			c.args = append(c.args, arg)
		}
		for range m.counts[i] {
			arg, err := c.asArray(p, args[next], next)
			if err != nil {
				return err
			}
			c.args = append(c.args, arg)
			next++
		}
	}
	return nil
}

// absent returns the value of a parameter without an argument.
func (c *call) absent(p syntax.Param, index int, context any) (any, error) {
	if !p.Context {
		return undefined{}, nil
	}
	if strings.IndexByte(p.Kinds, kindOf(context)) < 0 {
		return nil, c.fail("T0411", "%s without argument %d uses the context, which must be %s, not %s",
			c.token, index+1, fitting(p), describe(context))
	}
	return context, nil
}

func (c *call) asArray(p syntax.Param, arg any, index int) (any, error) {
	if _, missing := arg.(undefined); missing || !p.Array {
		return arg, nil
	}
	l, isArray := listOf(arg)
	if !isArray {
		l = list{vals: []any{arg}}
	}
	if p.Item != 0 {
		if err := c.spend(l.len()); err != nil {
			return nil, err
		}
		for i := range l.len() {
			if kindOf(l.item(i)) != p.Item {
				return nil, c.fail("T0412", "argument %d of %s must be an array of %ss, not %s",
					index+1, c.token, kindName(p.Item), describe(l.item(i)))
			}
		}
	}
	if isArray {
		return arg, nil
	}
	return &l, nil
}

// mismatch returns an error for the argument that doesn't fit.
func (c *call) mismatch(m *matcher, args []any) error {
	switch {
	case m.arg == len(args):
		return c.fail("T0410", "%s: missing argument %d: %s", c.token, m.arg+1, fitting(m.params[m.param]))
	case m.param == len(m.params):
		return c.fail("T0410", "%s takes no argument %d", c.token, m.arg+1)
	}
	return c.fail("T0410", "argument %d of %s must be %s, not %s",
		m.arg+1, c.token, fitting(m.params[m.param]), describe(args[m.arg]))
}

// fitting lists the accepted kinds, as in "a string or a number".
func fitting(p syntax.Param) string {
	if p.Array {
		return "an array"
	}
	var names []string
	for _, k := range []byte(strings.TrimSuffix(p.Kinds, "m")) {
		names = append(names, withArticle(kindName(k)))
	}
	switch {
	case len(p.Kinds) > 6:
		return "any value"
	case len(names) > 1:
		last := len(names) - 1
		return fmt.Sprintf("%s or %s", strings.Join(names[:last], ", "), names[last])
	}
	return names[0]
}
