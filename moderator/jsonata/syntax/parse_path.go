package syntax

import (
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

// step joins two operands of "." to a path.
func (p *parser) step(left, right Node) Node {
	path, ok := left.(*Path)
	if !ok {
		path = &Path{Common: Common{At: left.Shared().At}}
		p.addStep(path, left)
	}
	if rest, ok := right.(*Path); ok {
		path.Steps = append(path.Steps, rest.Steps...)
		path.KeepSingleton = path.KeepSingleton || rest.KeepSingleton
	} else {
		// A predicate of a step sees the values of one item, those of an operand
		// by itself are the operand's.
		c := right.Shared()
		c.Stages, c.Filters = c.Filters, nil
		p.addStep(path, right)
	}
	markWhole(path.Steps[0])
	markWhole(path.Steps[len(path.Steps)-1])
	return path
}

func (p *parser) addStep(path *Path, step Node) {
	path.KeepSingleton = path.KeepSingleton || step.Shared().Keep
	switch n := step.(type) {
	case *String: // a."b c" is a field
		step = &Name{Common: n.Common, Name: n.Text}
	case *Number:
		p.badStep(n.At, jsnumber.Format(n.Value))
	case *Const:
		text, _ := json.Marshal(n.Value) // true, false, null
		p.badStep(n.At, string(text))
	}
	path.Steps = append(path.Steps, step)
}

func (p *parser) badStep(at int, value string) {
	e := p.fail(at, "S0213", value, value+" cannot be a step of a path")
	e.Hint = fmt.Sprintf("write `%s` in backquotes if it is the name of a field, or [%s] for an item of an array", value, value)
	p.later(e)
}

func markWhole(step Node) {
	if a, ok := step.(*Array); ok {
		a.Whole = true
	}
}

// BeginsWhole tells whether a node is, or begins with, an array that stays one
// item.
func BeginsWhole(n Node) bool {
	switch n := n.(type) {
	case *Array:
		return n.Whole
	case *Block:
		return n.whole
	case *Path:
		return BeginsWhole(n.Steps[0])
	}
	return false
}

// bracket reads on after "[" behind an operand: a predicate, an index, or
// nothing, which means that a sequence of one stays an array.
func (p *parser) bracket(left Node) (Node, error) {
	target := left
	path, isPath := left.(*Path)
	if isPath {
		target = path.Steps[len(path.Steps)-1]
	}
	c := target.Shared()
	if p.tok.is("]") {
		c.Keep = true
		if isPath {
			path.KeepSingleton = true
		}
		return left, p.advance()
	}
	at := p.tok.start
	predicate, err := p.expression(0)
	switch {
	case err != nil:
		return nil, err
	case c.Group != nil:
		p.later(p.fail(at, "S0209", "[", "a predicate cannot follow {…} that groups"))
	case isPath:
		c.Stages = append(c.Stages, predicate)
	default:
		c.Filters = append(c.Filters, predicate)
	}
	return left, p.expect("]")
}

// order reads on after "^" behind an operand: the terms to sort by.
func (p *parser) order(t token, left Node) (Node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	step := &Sort{Common: Common{At: t.start}}
	err := p.list(func() error {
		term := SortTerm{Descending: p.tok.is(">")}
		if term.Descending || p.tok.is("<") {
			if err := p.advance(); err != nil {
				return err
			}
		}
		var err error
		term.By, err = p.expression(0)
		step.Terms = append(step.Terms, term)
		return err
	})
	if err != nil {
		return nil, err
	}
	path, ok := left.(*Path)
	if !ok {
		path = &Path{Common: Common{At: left.Shared().At}, Steps: []Node{left}, KeepSingleton: left.Shared().Keep}
	}
	path.Steps = append(path.Steps, step)
	return path, p.expect(")")
}

// grouping reads on after "{" behind an operand.
func (p *parser) grouping(t token, left Node) (Node, error) {
	g, err := p.object(t)
	if err != nil {
		return nil, err
	}
	c := left.Shared()
	if c.Group != nil {
		p.later(p.fail(t.start, "S0210", "{", "only one {…} can group a step"))
	}
	c.Group = &g
	return left, nil
}
