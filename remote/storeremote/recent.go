package storeremote

import (
	"context"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// recentBytes bounds what a connection remembers of what it has put.
const recentBytes = 64 << 20

// recent is a store that need not read again what was just put through it. That it is
// still there is asked each time: a collector may have taken what no head names yet.
type recent struct {
	*fsstore.Store
	mu    sync.Mutex
	nodes map[cas.Hash]cas.Node
	room  int
}

func newRecent(s *fsstore.Store) *recent {
	return &recent{Store: s, nodes: map[cas.Hash]cas.Node{}, room: recentBytes}
}

// remember notes nodes that are there.
func (r *recent) remember(nodes []cas.Node) {
	const entry = 256 // roughly, besides the payload
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range nodes {
		if size := len(n.Payload) + entry; size <= r.room {
			r.nodes[n.Hash], r.room = n, r.room-size
		}
	}
}

// forget is for when a head names them: then nobody asks again.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.nodes)
	r.room = recentBytes
}

// Get implements [cas.Getter].
func (r *recent) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	r.mu.Lock()
	n, known := r.nodes[h]
	r.mu.Unlock()
	if known {
		if there, err := r.Has(ctx, h); there || err != nil {
			return n, err
		}
	}
	return r.Store.Get(ctx, h)
}
