package jsonata

import (
	"slices"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// Reads is what an expression can look at in its input, found without
// evaluating it. Who evaluates it can leave out the rest of the input, and can
// tell an author of names that the input will never have.
//
// It may name what no evaluation reaches, never the other way round: an input
// without what is not touched gives the same value.
type Reads struct {
	// Paths begin in the input itself, in the order written.
	Paths []Path
	// Whole: the expression can look at any field, because it uses the input as
	// a whole ($, $$, *, **), or a name that is only known when it runs.
	Whole bool
	// Unbound are variables that are neither assigned nor functions: they have
	// no value but that of [Options], in the order written.
	Unbound []Name
}

// Path is the beginning of a path in the input, as far as it has plain names.
type Path struct {
	Names []string
	Pos   Pos
	// Newest is k if the first name is used as name[-k]: the last k items give
	// the same result as all of them. Else it is 0.
	Newest int
	// Tested: the expression asks whether it has a value ($exists, ??), so it
	// may well have none.
	Tested bool
	// Equals is the text that it is compared with by = or !=, "" if there is none.
	Equals string
}

// Name is a name with its place.
type Name struct {
	Text string
	Pos  Pos
}

// Reads analyses the expression.
func (x *Expr) Reads() Reads {
	t := &tracer{tested: map[syntax.Node]bool{}, equals: map[syntax.Node]string{}, contextual: x.contextual, functions: x.functions}
	t.use(x.root, true)
	slices.SortStableFunc(t.paths, func(a, b *Path) int { return a.Pos.Offset - b.Pos.Offset })
	r := Reads{Whole: t.all, Unbound: slices.Clone(x.unbound)}
	c := cursor{src: x.src, pos: syntax.Position(x.src, 0)}
	for _, p := range t.paths {
		p.Pos = c.to(p.Pos.Offset)
		r.Paths = append(r.Paths, *p)
	}
	c.pos = syntax.Position(x.src, 0)
	slices.SortFunc(r.Unbound, func(a, b Name) int { return a.Pos.Offset - b.Pos.Offset })
	for i, n := range r.Unbound {
		r.Unbound[i].Pos = c.to(n.Pos.Offset)
	}
	return r
}

// Touches reports whether an expression can look at a field of its input.
func (r Reads) Touches(field string) bool {
	return r.Whole || slices.ContainsFunc(r.Paths, func(p Path) bool { return p.Names[0] == field })
}

// Newest is how many of the last items of a field the expression can look at; ok
// is false if that cannot be told.
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

// cursor finds the lines of many offsets, in order, in one go.
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
