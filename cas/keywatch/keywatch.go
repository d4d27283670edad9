// Package keywatch finds keys in nodes that leave the machine.
package keywatch

import (
	"context"
	"maps"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/secret"
)

// Store is a store that checks the nodes read from it for keys.
type Store struct {
	cas.Store
	looks secret.Looks
	mu    sync.Mutex
	found map[cas.Hash]string
}

// New watches a store.
func New(s cas.Store) *Store {
	return &Store{Store: s, looks: secret.NewLooks(), found: map[cas.Hash]string{}}
}

// Get implements [cas.Getter].
func (w *Store) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	n, err := w.Store.Get(ctx, h)
	if err == nil {
		if key := w.looks.In(n.Payload); key != "" {
			w.mu.Lock()
			w.found[h] = key
			w.mu.Unlock()
		}
	}
	return n, err
}

// Found returns the nodes that seem to contain a key, with the key's beginning.
func (w *Store) Found() map[cas.Hash]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.found)
}
