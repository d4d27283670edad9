package jsonata

// node is a part of an expression.
type node interface{ shared() *common }

// common is what every node may have: brackets can follow anything.
type common struct {
	at      int    // offset of what errors are about
	filters []node // predicates on the value of the node
	stages  []node // predicates of a step in a path: they see one item's values at a time
	group   *group
	keep    bool // "[]" follows: a sequence of one stays an array
}

func (c *common) shared() *common { return c }

type (
	// pathNode is a.b.c: each step is evaluated for each item that the step
	// before it gave.
	pathNode struct {
		common
		steps         []node
		keepSingleton bool // a step has "[]"
	}
	// nameNode is a field. Outside of a path it is a path of one step.
	nameNode struct {
		common
		name string
	}
	// variableNode is $name; "" is the context, "$" the root.
	variableNode struct {
		common
		name     string
		assigned bool      // somewhere in the expression
		builtin  *function // of the name
	}
	wildcardNode   struct{ common }
	descendantNode struct{ common }

	stringNode struct {
		common
		text string
	}
	numberNode struct {
		common
		value float64
	}
	// constNode is true, false or null.
	constNode struct {
		common
		value any
	}

	// arrayNode is […].
	arrayNode struct {
		common
		items []node
		// whole: as the first or last step of a path, the array stays one item
		// instead of being flattened into the items around it.
		whole bool
	}
	rangeNode struct {
		common
		from, to node
	}
	// objectNode is {…} by itself; after another node it is that node's group.
	objectNode struct {
		common
		group
	}
	group struct {
		at    int
		pairs []pair
	}
	pair struct{ key, value node }

	// blockNode is (a; b; c).
	blockNode struct {
		common
		exprs []node
		whole bool // see arrayNode
	}
	bindNode struct {
		common
		name  string
		value node
	}

	negateNode struct {
		common
		operand node
	}
	// binaryNode is an operator between two operands.
	binaryNode struct {
		common
		op          string
		left, right node
	}
	conditionNode struct {
		common
		condition, then, otherwise node // otherwise may be nil
	}

	// callNode is f(a, b). A nil argument is a "?": the call is partial then.
	callNode struct {
		common
		callee  node
		args    []node
		partial bool
	}
	// applyNode is value ~> f or value ~> f(b).
	applyNode struct {
		common
		left, right node
	}
	// lambdaNode is function($a, $b){body}.
	lambdaNode struct {
		common
		params    []string
		signature []param // nil if it takes any arguments
		body      node
	}
	// regexNode is /…/.
	regexNode struct {
		common
		function *function
	}
	// sortNode is the step ^(…) of a path.
	sortNode struct {
		common
		terms []sortTerm
	}
	sortTerm struct {
		by         node
		descending bool
	}
)

// children are the nodes inside a node, in the order written.
func children(n node) []node {
	var inner []node
	switch n := n.(type) {
	case *pathNode:
		inner = append(inner, n.steps...)
	case *arrayNode:
		inner = append(inner, n.items...)
	case *rangeNode:
		inner = append(inner, n.from, n.to)
	case *objectNode:
		inner = n.group.appendTo(inner)
	case *blockNode:
		inner = append(inner, n.exprs...)
	case *bindNode:
		inner = append(inner, n.value)
	case *negateNode:
		inner = append(inner, n.operand)
	case *binaryNode:
		inner = append(inner, n.left, n.right)
	case *conditionNode:
		inner = append(inner, n.condition, n.then)
		if n.otherwise != nil {
			inner = append(inner, n.otherwise)
		}
	case *callNode:
		inner = append(append(inner, n.callee), given(n.args)...)
	case *applyNode:
		inner = append(inner, n.left, n.right)
	case *lambdaNode:
		inner = append(inner, n.body)
	case *sortNode:
		for _, t := range n.terms {
			inner = append(inner, t.by)
		}
	}
	c := n.shared()
	inner = append(append(inner, c.filters...), c.stages...)
	if c.group != nil {
		inner = c.group.appendTo(inner)
	}
	return inner
}

func (g *group) appendTo(nodes []node) []node {
	for _, p := range g.pairs {
		nodes = append(nodes, p.key, p.value)
	}
	return nodes
}

// given leaves out the arguments that a partial call leaves open.
func given(args []node) []node {
	var nodes []node
	for _, a := range args {
		if a != nil {
			nodes = append(nodes, a)
		}
	}
	return nodes
}
