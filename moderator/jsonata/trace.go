package jsonata

import (
	"slices"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// tracer follows the input through an expression. It tracks only whether a value can be the whole input,
// because names already account for parts of it.
type tracer struct {
	paths  []*Path // only the offsets of their positions are set
	all    bool
	tested map[syntax.Node]bool // paths tested for having a value
	equals map[syntax.Node]string
	// contextual means that a function determined only at the call can take its argument from the context.
	contextual bool
	functions  map[string]*function // functions that the expression names
}

// begin records a path that starts at the input.
func (t *tracer) begin(name string, at int) *Path {
	p := &Path{Names: []string{name}, Pos: Pos{Offset: at}}
	t.paths = append(t.paths, p)
	return p
}

// use traces a node whose value is used. If it is the whole input, all of it counts as used.
func (t *tracer) use(n syntax.Node, whole bool) {
	if t.trace(n, whole) {
		t.all = true
	}
}

// trace reports whether the value of a node can be the whole input; the argument whole reports the same for
// the context.
func (t *tracer) trace(n syntax.Node, whole bool) bool {
	c := n.Shared()
	value := t.value(n, whole)
	for _, predicate := range slices.Concat(c.Filters, c.Stages) {
		t.use(predicate, value)
	}
	if c.Group != nil {
		t.group(c.Group, value)
		return false
	}
	return value
}

func (t *tracer) group(g *syntax.Group, whole bool) {
	for _, p := range g.Pairs {
		t.use(p.Key, whole)
		t.use(p.Value, whole)
	}
}

func (t *tracer) value(n syntax.Node, whole bool) bool {
	switch n := n.(type) {
	case *syntax.Path:
		return t.path(n, whole)
	case *syntax.Variable:
		if t.free(n) {
			t.begin(n.Name, n.At).bound = true
		}
		return n.Name == "$" || n.Name == "" && whole
	case *syntax.Wildcard, *syntax.Descendants:
		t.all = t.all || whole
		return false
	case *syntax.Object:
		t.group(&n.Group, whole)
		return false
	case *syntax.Block:
		return t.block(n, whole)
	case *syntax.Condition:
		return t.condition(n, whole)
	case *syntax.Binary:
		if n.Op == "??" || n.Op == "?:" {
			t.tested[n.Left] = true
			left := t.trace(n.Left, whole)
			return t.trace(n.Right, whole) || left
		}
		if n.Op == "=" || n.Op == "!=" {
			t.compared(n.Left, n.Right)
			t.compared(n.Right, n.Left)
		}
	case *syntax.Sort:
		for _, term := range n.Terms {
			t.use(term.By, whole)
		}
		return whole
	case *syntax.Call:
		t.call(n, nil, whole)
		return false
	case *syntax.Apply:
		t.apply(n, whole)
		return false
	}
	for _, inner := range operands(n) {
		t.use(inner, whole)
	}
	return false
}

// path traces the steps. All names after the first one in the input belong to one path.
func (t *tracer) path(n *syntax.Path, whole bool) bool {
	var open *Path
	for i, step := range n.Steps {
		name, ok := step.(*syntax.Name)
		v, isVariable := step.(*syntax.Variable)
		if isVariable && t.free(v) && i+1 < len(n.Steps) && len(v.Filters)+len(v.Stages) == 0 && v.Group == nil {
			open = t.begin(v.Name, v.At)
			open.bound, open.Tested, open.Equals, whole = true, t.tested[n], t.equals[n], false
			continue
		}
		switch {
		case ok && whole:
			open = t.begin(name.Name, name.At)
			open.Newest, open.Tested, open.Equals = newest(name.Stages), t.tested[n], t.equals[n]
		case ok && open != nil:
			open.Names = append(open.Names, name.Name)
		default:
			open = nil
		}
		whole = t.trace(step, whole)
	}
	return whole
}

// free reports whether only [Options] can give a variable a value.
func (t *tracer) free(v *syntax.Variable) bool {
	return v.Name != "" && v.Name != "$" && !v.Assigned && t.functions[v.Name] == nil
}

// compared records a path, in the input or in a variable, that is compared with a literal text.
func (t *tracer) compared(n, with syntax.Node) {
	path, ok := n.(*syntax.Path)
	text, isText := with.(*syntax.String)
	if !ok || !isText || len(text.Filters) > 0 || text.Group != nil || path.Group != nil {
		return
	}
	steps := path.Steps
	if v, ok := steps[0].(*syntax.Variable); ok && t.free(v) {
		steps = steps[1:]
	}
	if !slices.ContainsFunc(steps, func(step syntax.Node) bool { _, ok := step.(*syntax.Name); return !ok }) {
		t.equals[path] = text.Text
	}
}

// newest returns k if the first predicate is -k, otherwise 0.
func newest(predicates []syntax.Node) int {
	if len(predicates) == 0 {
		return 0
	}
	n, ok := predicates[0].(*syntax.Number)
	if !ok || n.Value > -1 || n.Value < -1<<30 || n.Value != float64(int(n.Value)) {
		return 0
	}
	return int(-n.Value)
}

// operands returns the children of a node, without its predicates and grouping.
func operands(n syntax.Node) []syntax.Node {
	all, c := syntax.Children(n), n.Shared()
	after := len(c.Filters) + len(c.Stages)
	if c.Group != nil {
		after += 2 * len(c.Group.Pairs)
	}
	return all[:len(all)-after]
}

func (t *tracer) block(n *syntax.Block, whole bool) bool {
	value := false
	for _, expr := range n.Exprs {
		value = t.trace(expr, whole)
	}
	return value
}

func (t *tracer) condition(n *syntax.Condition, whole bool) bool {
	t.use(n.Condition, whole)
	value := t.trace(n.Then, whole)
	if n.Otherwise != nil {
		value = t.trace(n.Otherwise, whole) || value
	}
	return value
}

// call traces a call; piped is the first argument if it is on the left of "~>".
func (t *tracer) call(n *syntax.Call, piped syntax.Node, whole bool) {
	args := syntax.Given(n.Args)
	if piped != nil {
		args = slices.Insert(args, 0, piped)
	}
	v, ok := n.Function.(*syntax.Variable)
	switch {
	case !ok || t.functions[v.Name] == nil || v.Assigned || len(v.Filters) > 0:
		t.use(n.Function, whole)
		t.all = t.all || whole && t.contextual
	case n.Partial:
	case v.Name == "lookup" && len(args) == 2 && t.lookup(args[0], args[1], whole):
		return
	case v.Name == "exists" && len(args) > 0:
		t.tested[args[0]] = true
	case t.functions[v.Name].takesContext(len(args)):
		t.all = t.all || whole
	}
	for _, a := range args {
		t.use(a, whole)
	}
}

// lookup traces $lookup(object, "key"), which is a path if the key is a literal.
func (t *tracer) lookup(object, key syntax.Node, whole bool) bool {
	k, ok := key.(*syntax.String)
	if !ok || len(k.Filters) > 0 || k.Group != nil {
		return false
	}
	if t.trace(object, whole) {
		t.begin(k.Text, k.At)
	}
	return true
}

func (t *tracer) apply(n *syntax.Apply, whole bool) {
	if call, ok := n.Right.(*syntax.Call); ok && !call.Partial {
		t.call(call, n.Left, whole)
		return
	}
	t.use(n.Left, whole)
	t.use(n.Right, whole)
}
