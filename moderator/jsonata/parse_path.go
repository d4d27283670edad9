package jsonata

import (
	"fmt"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

// step joins two operands of "." to a path.
func (p *parser) step(left, right node) node {
	path, ok := left.(*pathNode)
	if !ok {
		path = &pathNode{common: common{at: left.shared().at}}
		p.addStep(path, left)
	}
	if rest, ok := right.(*pathNode); ok {
		path.steps = append(path.steps, rest.steps...)
		path.keepSingleton = path.keepSingleton || rest.keepSingleton
	} else {
		// A predicate of a step sees the values of one item, those of an operand
		// by itself are the operand's.
		c := right.shared()
		c.stages, c.filters = c.filters, nil
		p.addStep(path, right)
	}
	markWhole(path.steps[0])
	markWhole(path.steps[len(path.steps)-1])
	return path
}

func (p *parser) addStep(path *pathNode, step node) {
	path.keepSingleton = path.keepSingleton || step.shared().keep
	switch n := step.(type) {
	case *stringNode: // a."b c" is a field
		step = &nameNode{common: n.common, name: n.text}
	case *numberNode:
		p.badStep(n.at, jsnumber.Format(n.value))
	case *constNode:
		p.badStep(n.at, describe(n.value))
	}
	path.steps = append(path.steps, step)
}

func (p *parser) badStep(at int, value string) {
	e := p.fail(at, "S0213", value, value+" cannot be a step of a path")
	e.Hint = fmt.Sprintf("write `%s` in backquotes if it is the name of a field, or [%s] for an item of an array", value, value)
	p.later(e)
}

func markWhole(step node) {
	if a, ok := step.(*arrayNode); ok {
		a.whole = true
	}
}

// beginsWhole tells whether a node is, or begins with, an array that stays one
// item.
func beginsWhole(n node) bool {
	switch n := n.(type) {
	case *arrayNode:
		return n.whole
	case *blockNode:
		return n.whole
	case *pathNode:
		return beginsWhole(n.steps[0])
	}
	return false
}

// bracket reads on after "[" behind an operand: a predicate, an index, or
// nothing, which means that a sequence of one stays an array.
func (p *parser) bracket(left node) (node, error) {
	target := left
	path, isPath := left.(*pathNode)
	if isPath {
		target = path.steps[len(path.steps)-1]
	}
	c := target.shared()
	if p.tok.is("]") {
		c.keep = true
		if isPath {
			path.keepSingleton = true
		}
		return left, p.advance()
	}
	at := p.tok.start
	predicate, err := p.expression(0)
	switch {
	case err != nil:
		return nil, err
	case c.group != nil:
		p.later(p.fail(at, "S0209", "[", "a predicate cannot follow {…} that groups"))
	case isPath:
		c.stages = append(c.stages, predicate)
	default:
		c.filters = append(c.filters, predicate)
	}
	return left, p.expect("]")
}

// order reads on after "^" behind an operand: the terms to sort by.
func (p *parser) order(t token, left node) (node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	step := &sortNode{common: common{at: t.start}}
	err := p.list(func() error {
		term := sortTerm{descending: p.tok.is(">")}
		if term.descending || p.tok.is("<") {
			if err := p.advance(); err != nil {
				return err
			}
		}
		var err error
		term.by, err = p.expression(0)
		step.terms = append(step.terms, term)
		return err
	})
	if err != nil {
		return nil, err
	}
	path, ok := left.(*pathNode)
	if !ok {
		path = &pathNode{common: common{at: left.shared().at}, steps: []node{left}, keepSingleton: left.shared().keep}
	}
	path.steps = append(path.steps, step)
	return path, p.expect(")")
}

// grouping reads on after "{" behind an operand.
func (p *parser) grouping(t token, left node) (node, error) {
	g, err := p.object(t)
	if err != nil {
		return nil, err
	}
	c := left.shared()
	if c.group != nil {
		p.later(p.fail(t.start, "S0210", "{", "only one {…} can group a step"))
	}
	c.group = &g
	return left, nil
}
