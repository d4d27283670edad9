package cas

import (
	"context"
	"sync"
)

// recallBytes bounds what a [Recalling] keeps: the nodes that several parts of one
// step need are few and small.
const recallBytes = 1 << 20

// Recalling returns a reader that reads a node once, as long as there are few of
// them. It is for one step: what becomes of a node that was read, such as damage or
// a redaction, it does not see. Safe for concurrent use if r is.
func Recalling(r Reader) Reader {
	return &recalling{Reader: r, nodes: map[Hash]Node{}, room: recallBytes}
}

type recalling struct {
	Reader
	mu    sync.Mutex
	nodes map[Hash]Node
	room  int
}

// Get implements [Getter].
func (r *recalling) Get(ctx context.Context, h Hash) (Node, error) {
	r.mu.Lock()
	n, ok := r.nodes[h]
	r.mu.Unlock()
	if ok {
		return n, ctx.Err()
	}
	n, err := r.Reader.Get(ctx, h)
	if err != nil {
		return n, err
	}
	const entry = 256 // roughly, besides the payload
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := len(n.Payload) + entry; size <= r.room {
		r.nodes[h], r.room = n, r.room-size
	}
	return n, nil
}
