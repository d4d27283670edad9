package jsonata

import "github.com/united-workforce/uwf/moderator/jsonata/syntax"

// Expr is a parsed expression. It is immutable: many goroutines may evaluate it.
type Expr struct {
	src       string
	root      syntax.Node
	functions map[string]*function // that it names
	unbound   []Name               // see Reads; only their offsets
	// contextual: there are functions as values that use the context.
	contextual bool
}

// Parse reads an expression, and refuses what this package leaves out
// ([ErrLeftOut]), functions that do not exist, and calls with too few or too
// many arguments. The error is an *[Error].
func Parse(src string) (*Expr, error) {
	root, assigned, err := syntax.Parse(src)
	if err != nil {
		return nil, err
	}
	x := &Expr{src: src, root: root, functions: map[string]*function{}}
	if err := check(x, assigned); err != nil {
		return nil, err
	}
	return x, nil
}
