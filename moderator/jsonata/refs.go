package jsonata

import "slices"

// Ref is a name in an expression.
type Ref struct {
	Name string
	Pos  Pos
}

// Uses tells whether evaluation can look at a top-level field of the input. It
// may say so of a field that no evaluation reaches, never the other way round:
// an input without the fields that are not used gives the same value.
func (x *Expr) Uses(field string) bool {
	fields, all := x.Fields()
	return all || slices.ContainsFunc(fields, func(r Ref) bool { return r.Name == field })
}

// Fields lists where the expression names top-level fields of the input, in the
// order written. all is true if it can also look at any other: as a whole ($,
// $$, *, **), or under a name that is only known when it runs.
func (x *Expr) Fields() (fields []Ref, all bool) {
	t := &tracer{src: x.src}
	t.keep(x.root, true)
	slices.SortFunc(t.fields, func(a, b Ref) int { return a.Pos.Offset - b.Pos.Offset })
	return t.fields, t.all
}

// Variables lists the variables without a value of their own: neither assigned
// in the expression nor functions. They come from [Options], or are undefined.
func (x *Expr) Variables() []Ref { return slices.Clone(x.variables) }

// tracer follows the input through an expression. Of a value it only knows
// whether it can be the whole input; the parts of the input that a name leads
// to have been accounted for by that name.
type tracer struct {
	src    string
	fields []Ref
	all    bool
}

func (t *tracer) touch(name string, at int) {
	t.fields = append(t.fields, Ref{name, position(t.src, at)})
}

// keep traces a node whose value is kept or looked at: if that is the whole
// input, all of it is used.
func (t *tracer) keep(n node, whole bool) {
	if t.trace(n, whole) {
		t.all = true
	}
}

// trace tells whether the value of a node can be the whole input; whole tells
// the same of the context.
func (t *tracer) trace(n node, whole bool) bool {
	c := n.shared()
	value := t.value(n, whole)
	for _, predicate := range slices.Concat(c.filters, c.stages) {
		t.keep(predicate, value)
	}
	if c.group != nil {
		t.group(c.group, value)
		return false
	}
	return value
}

func (t *tracer) group(g *group, whole bool) {
	for _, p := range g.pairs {
		t.keep(p.key, whole)
		t.keep(p.value, whole)
	}
}

func (t *tracer) value(n node, whole bool) bool {
	switch n := n.(type) {
	case *pathNode:
		for _, step := range n.steps {
			whole = t.trace(step, whole)
		}
		return whole
	case *nameNode:
		if whole {
			t.touch(n.name, n.at)
		}
		return false
	case *variableNode:
		return n.name == "$" || n.name == "" && whole
	case *wildcardNode, *descendantNode:
		t.all = t.all || whole
		return false
	case *objectNode:
		t.group(&n.group, whole)
		return false
	case *blockNode:
		return t.block(n, whole)
	case *conditionNode:
		return t.condition(n, whole)
	case *elseNode:
		left := t.trace(n.left, whole)
		return t.trace(n.right, whole) || left
	case *callNode:
		t.call(n, nil, whole)
		return false
	case *applyNode:
		t.apply(n, whole)
		return false
	}
	for _, inner := range operands(n) {
		t.keep(inner, whole)
	}
	return false
}

// operands are the children of a node that are its own, not of what follows it.
func operands(n node) []node {
	all, c := children(n), n.shared()
	after := len(c.filters) + len(c.stages)
	if c.group != nil {
		after += 2 * len(c.group.pairs)
	}
	return all[:len(all)-after]
}

func (t *tracer) block(n *blockNode, whole bool) bool {
	value := false
	for _, expr := range n.exprs {
		value = t.trace(expr, whole)
	}
	return value
}

func (t *tracer) condition(n *conditionNode, whole bool) bool {
	t.keep(n.condition, whole)
	value := t.trace(n.then, whole)
	if n.otherwise != nil {
		value = t.trace(n.otherwise, whole) || value
	}
	return value
}

// call traces a call; piped is the first argument if it comes from "~>".
func (t *tracer) call(n *callNode, piped node, whole bool) {
	args := given(n.args)
	if piped != nil {
		args = slices.Insert(args, 0, piped)
	}
	v, ok := n.callee.(*variableNode)
	switch {
	case !ok || v.builtin == nil || v.assigned || len(v.filters) > 0: // whatever it takes from the context
		t.keep(n.callee, whole)
		t.all = t.all || whole
	case n.partial:
	case v.name == "lookup" && len(args) == 2 && t.lookup(args[0], args[1], whole):
		return
	case v.builtin.takesContext(len(args)):
		t.all = t.all || whole
	}
	for _, a := range args {
		t.keep(a, whole)
	}
}

// lookup traces $lookup(object, "key"), which is a path if the key is written
// there.
func (t *tracer) lookup(object, key node, whole bool) bool {
	k, ok := key.(*stringNode)
	if !ok || len(k.filters) > 0 || k.group != nil {
		return false
	}
	if t.trace(object, whole) {
		t.touch(k.text, k.at)
	}
	return true
}

func (t *tracer) apply(n *applyNode, whole bool) {
	if call, ok := n.right.(*callNode); ok && !call.partial {
		t.call(call, n.left, whole)
		return
	}
	t.keep(n.left, whole)
	t.keep(n.right, whole)
}
