package jsonata

import "slices"

// Reads is what an expression can touch of its input, found without evaluating
// it. Who evaluates it can leave out the rest of the input, and can tell an
// author of names that the input will never have.
type Reads struct {
	// Paths begin in the input itself, in the order written.
	Paths []Path
	// Whole: there is a use of the input that is no path, such as $ or *.
	Whole bool
	// Unbound are variables that nothing assigns: they never have a value.
	Unbound []Name
}

// Path is the beginning of a path in the input, as far as it has plain names.
type Path struct {
	Names []string
	Pos   Pos
	// Newest is k if the first name is only used as name[-k]: the last k items
	// give the same result as all of them. Else it is 0.
	Newest int
	// Tested: it is an argument of $exists, so it may well have no value.
	Tested bool
}

// Name is a name with its place.
type Name struct {
	Text string
	Pos  Pos
}

// Reads analyses the expression.
func (x *Expr) Reads() Reads {
	r := &reader{src: x.src, assigned: map[string]bool{}, tested: map[node]bool{}}
	r.assignments(x.root)
	r.walk(x.root, true)
	return r.found
}

// Touches reports whether an expression can use a field of its input.
func (r Reads) Touches(field string) bool {
	return r.Whole || slices.ContainsFunc(r.Paths, func(p Path) bool { return p.Names[0] == field })
}

// Newest is how many of the last items of a field the expression can use at
// most; ok is false if that cannot be told.
func (r Reads) Newest(field string) (n int, ok bool) {
	if r.Whole {
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

// reader walks an expression. atRoot says whether the context of a node is the
// input; within predicates, groups and the later steps of a path it is not.
type reader struct {
	src      string
	assigned map[string]bool
	tested   map[node]bool
	found    Reads
}

func (r *reader) assignments(n node) {
	if b, ok := n.(*bindNode); ok {
		r.assigned[b.name] = true
	}
	for _, inner := range children(n) {
		r.assignments(inner)
	}
}

func (r *reader) walk(n node, atRoot bool) {
	switch n := n.(type) {
	case *pathNode:
		r.path(n, atRoot)
	case *variableNode:
		r.variable(n, atRoot)
	case *wildcardNode, *descendantNode:
		r.found.Whole = r.found.Whole || atRoot
	case *callNode:
		r.call(n, atRoot)
		r.operands(n, atRoot)
	default:
		r.operands(n, atRoot)
	}
	r.behind(n)
}

// operands walks what has the same context as the node around it.
func (r *reader) operands(n node, atRoot bool) {
	c := n.shared()
	behind := len(c.filters) + len(c.stages)
	if c.group != nil {
		behind += 2 * len(c.group.pairs)
	}
	inner := children(n)
	for _, operand := range inner[:len(inner)-behind] {
		r.walk(operand, atRoot)
	}
}

// behind walks what sees the values of a node: its predicates and its group.
func (r *reader) behind(n node) {
	c := n.shared()
	for _, inner := range slices.Concat(c.filters, c.stages) {
		r.walk(inner, false)
	}
	if c.group != nil {
		for _, inner := range c.group.appendTo(nil) {
			r.walk(inner, false)
		}
	}
}

func (r *reader) path(p *pathNode, atRoot bool) {
	steps := p.steps
	if v, ok := steps[0].(*variableNode); ok && len(steps) > 1 && isInput(v, atRoot) && plainName(steps[1]) {
		r.behind(v)
		steps, atRoot = steps[1:], true
	}
	if atRoot && plainName(steps[0]) {
		r.root(steps, r.tested[p])
	}
	for i, step := range steps {
		r.walk(step, atRoot && i == 0)
	}
}

// isInput reports whether a variable is the input: $$, or $ where that is the
// context.
func isInput(v *variableNode, atRoot bool) bool {
	return v.name == "$" || v.name == "" && atRoot
}

func plainName(n node) bool {
	_, ok := n.(*nameNode)
	return ok
}

// root notes a path that begins in the input.
func (r *reader) root(steps []node, tested bool) {
	first := steps[0].shared()
	path := Path{Pos: position(r.src, first.at), Newest: newest(first), Tested: tested}
	for _, step := range steps {
		name, ok := step.(*nameNode)
		if !ok {
			break
		}
		path.Names = append(path.Names, name.name)
	}
	r.found.Paths = append(r.found.Paths, path)
}

// newest is k if [-k] follows, and else 0.
func newest(c *common) int {
	predicates := slices.Concat(c.stages, c.filters)
	if len(predicates) == 0 {
		return 0
	}
	index, ok := predicates[0].(*numberNode)
	if !ok || index.value > -1 || index.value < -1<<30 || index.value != float64(int(index.value)) {
		return 0
	}
	return int(-index.value)
}

func (r *reader) variable(v *variableNode, atRoot bool) {
	switch {
	case isInput(v, atRoot):
		r.found.Whole = true
	case v.name != "" && v.builtin == nil && !r.assigned[v.name]:
		r.found.Unbound = append(r.found.Unbound, Name{v.name, position(r.src, v.at)})
	}
}

// call notes that the context stands in for an argument that is left out.
func (r *reader) call(n *callNode, atRoot bool) {
	v, ok := n.callee.(*variableNode)
	if !ok || v.builtin == nil || !atRoot {
		return
	}
	if v.builtin.name == "$exists" {
		for _, argument := range given(n.args) {
			r.tested[argument] = true
		}
	}
	_, most := v.builtin.arity()
	standsIn := slices.ContainsFunc(v.builtin.params, func(p param) bool { return p.context })
	if standsIn && (most < 0 || len(n.args) < most) {
		r.found.Whole = true
	}
}
