package graph

import (
	"context"

	"github.com/united-workforce/uwf/cas"
)

// Expand returns a node's payload with every ref replaced by its target, down to depth levels (<0: all). A
// cycle keeps its hash. A target referenced twice is shared rather than copied, so don't modify the result. A
// redacted node is replaced by [cas.RedactedError.Value]. It returns the errors of Get and [Refs], for any of the
// nodes.
func Expand(ctx context.Context, r cas.Reader, h cas.Hash, depth int) (any, error) {
	e := expander{finder: newRefFinder(r), open: map[cas.Hash]bool{}, done: map[place]any{}}
	return e.expand(ctx, h, depth)
}

// place is a node and its remaining depth.
type place struct {
	hash  cas.Hash
	depth int
}

type expander struct {
	finder *refFinder
	open   map[cas.Hash]bool // being expanded: another occurrence is a cycle
	done   map[place]any
}

func (e *expander) expand(ctx context.Context, h cas.Hash, depth int) (any, error) {
	at := place{h, depth}
	if v, ok := e.done[at]; ok {
		return v, nil
	}
	n, err := e.finder.reader.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
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
	v, err := e.finder.replace(ctx, n, func(ref cas.Hash) (any, error) {
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
