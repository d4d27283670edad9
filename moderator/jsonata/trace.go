package jsonata

import "slices"

// tracer follows the input through an expression. Of a value it only knows
// whether it can be the whole input; the parts of the input that a name leads
// to have been accounted for by that name.
type tracer struct {
	paths  []*Path // of their places, only the offsets
	all    bool
	tested map[node]bool // the paths that are asked whether they have a value
	equals map[node]string
	// contextual: a function that is only known when it is called may take its
	// argument from the context.
	contextual bool
}

// begin notes a path that begins in the input.
func (t *tracer) begin(name string, at int) *Path {
	p := &Path{Names: []string{name}, Pos: Pos{Offset: at}}
	t.paths = append(t.paths, p)
	return p
}

// use traces a node whose value is kept or looked at: if that is the whole
// input, all of it is used.
func (t *tracer) use(n node, whole bool) {
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
		t.use(predicate, value)
	}
	if c.group != nil {
		t.group(c.group, value)
		return false
	}
	return value
}

func (t *tracer) group(g *group, whole bool) {
	for _, p := range g.pairs {
		t.use(p.key, whole)
		t.use(p.value, whole)
	}
}

func (t *tracer) value(n node, whole bool) bool {
	switch n := n.(type) {
	case *pathNode:
		return t.path(n, whole)
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
	case *binaryNode:
		if n.op == "??" || n.op == "?:" {
			t.tested[n.left] = true
			left := t.trace(n.left, whole)
			return t.trace(n.right, whole) || left
		}
		if n.op == "=" || n.op == "!=" {
			t.compared(n.left, n.right)
			t.compared(n.right, n.left)
		}
	case *sortNode:
		for _, term := range n.terms {
			t.use(term.by, whole)
		}
		return whole
	case *callNode:
		t.call(n, nil, whole)
		return false
	case *applyNode:
		t.apply(n, whole)
		return false
	}
	for _, inner := range operands(n) {
		t.use(inner, whole)
	}
	return false
}

// path traces the steps. From the first name in the input on, the names belong
// to one path.
func (t *tracer) path(n *pathNode, whole bool) bool {
	var open *Path
	for _, step := range n.steps {
		name, ok := step.(*nameNode)
		switch {
		case ok && whole:
			open = t.begin(name.name, name.at)
			open.Newest, open.Tested, open.Equals = newest(name.stages), t.tested[n], t.equals[n]
		case ok && open != nil:
			open.Names = append(open.Names, name.name)
		default:
			open = nil
		}
		whole = t.trace(step, whole)
	}
	return whole
}

// compared notes a path of names that is compared with a text written there.
func (t *tracer) compared(n, with node) {
	path, ok := n.(*pathNode)
	text, isText := with.(*stringNode)
	if !ok || !isText || len(text.filters) > 0 || text.group != nil || path.group != nil {
		return
	}
	if !slices.ContainsFunc(path.steps, func(step node) bool { _, ok := step.(*nameNode); return !ok }) {
		t.equals[path] = text.text
	}
}

// newest is k if the first predicate is -k, else 0.
func newest(predicates []node) int {
	if len(predicates) == 0 {
		return 0
	}
	n, ok := predicates[0].(*numberNode)
	if !ok || n.value > -1 || n.value < -1<<30 || n.value != float64(int(n.value)) {
		return 0
	}
	return int(-n.value)
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
	t.use(n.condition, whole)
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
	case !ok || v.builtin == nil || v.assigned || len(v.filters) > 0:
		t.use(n.callee, whole)
		t.all = t.all || whole && t.contextual
	case n.partial:
	case v.name == "lookup" && len(args) == 2 && t.lookup(args[0], args[1], whole):
		return
	case v.name == "exists" && len(args) > 0:
		t.tested[args[0]] = true
	case v.builtin.takesContext(len(args)):
		t.all = t.all || whole
	}
	for _, a := range args {
		t.use(a, whole)
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
		t.begin(k.text, k.at)
	}
	return true
}

func (t *tracer) apply(n *applyNode, whole bool) {
	if call, ok := n.right.(*callNode); ok && !call.partial {
		t.call(call, n.left, whole)
		return
	}
	t.use(n.left, whole)
	t.use(n.right, whole)
}
