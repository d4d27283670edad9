package cas

import "context"

// Expand is a node's payload with every ref replaced by what it refers to, down
// to depth levels (<0: all). A cycle keeps its hash. What is referred to twice
// is one value, not a copy: do not change the result. What was redacted says so
// ([RedactedError.Value]). Errors: those of Get and [Refs], for any of the nodes.
func Expand(ctx context.Context, r Reader, h Hash, depth int) (any, error) {
	e := expander{finder: newRefFinder(r), open: map[Hash]bool{}, done: map[place]any{}}
	return e.expand(ctx, h, depth)
}

// place is a node at a remaining depth.
type place struct {
	hash  Hash
	depth int
}

type expander struct {
	finder *refFinder
	open   map[Hash]bool // being expanded: meeting one again is a cycle
	done   map[place]any
}

func (e *expander) expand(ctx context.Context, h Hash, depth int) (any, error) {
	at := place{h, depth}
	if v, ok := e.done[at]; ok {
		return v, nil
	}
	n, err := e.finder.reader.Get(ctx, h)
	if redacted, ok := AsRedacted(err); ok {
		return redacted.Value(), nil
	}
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return n.Value()
	}
	e.open[h] = true
	defer delete(e.open, h)
	v, err := e.finder.replace(ctx, n, func(ref Hash) (any, error) {
		if e.open[ref] {
			return string(ref), nil
		}
		return e.expand(ctx, ref, max(depth, 0)-1)
	})
	if err == nil {
		e.done[at] = v
	}
	return v, err
}
