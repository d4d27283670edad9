package cas

import (
	"context"
	"iter"
)

// WalkOptions say where a walk goes: FollowTypes also visits the schema of each node.
type WalkOptions struct{ FollowTypes bool }

// Walk yields every node reachable from the roots once, breadth first. A node
// that cannot be read is yielded with its hash alone and the error of Get; one
// whose refs cannot be found is yielded whole, with the error of [Refs]. The
// walk goes on after both. It ends with ctx, whose error it yields last.
func Walk(ctx context.Context, r Reader, roots []Hash, o WalkOptions) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		w := walker{finder: newRefFinder(r), seen: map[Hash]bool{}}
		w.enqueue(roots...)
		for len(w.queue) > 0 {
			if err := ctx.Err(); err != nil {
				yield(Node{}, err)
				return
			}
			h := w.queue[0]
			w.queue = w.queue[1:]
			if !yield(w.visit(ctx, h, o)) {
				return
			}
		}
	}
}

type walker struct {
	finder *refFinder
	seen   map[Hash]bool
	queue  []Hash
}

func (w *walker) enqueue(hashes ...Hash) {
	for _, h := range hashes {
		if !w.seen[h] {
			w.seen[h] = true
			w.queue = append(w.queue, h)
		}
	}
}

func (w *walker) visit(ctx context.Context, h Hash, o WalkOptions) (Node, error) {
	n, err := w.finder.reader.Get(ctx, h)
	if err != nil {
		return Node{Hash: h}, err
	}
	refs, err := w.finder.refs(ctx, n)
	w.enqueue(refs...)
	if o.FollowTypes {
		w.enqueue(n.Type)
	}
	return n, err
}
