// Package memstore keeps nodes in memory, for tests and dry runs.
package memstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
)

// Store implements [cas.Store]. Its content isn't persisted; Commit is Put.
type Store struct {
	kinds *cas.Kinds
	a     cas.Algorithm
	mu    sync.RWMutex
	nodes map[cas.Hash]cas.Node
}

var _ cas.Store = (*Store)(nil)

// New returns an empty store.
func New(a cas.Algorithm) *Store {
	return &Store{a: a, kinds: cas.NewKinds(a), nodes: map[cas.Hash]cas.Node{}}
}

// Algorithm implements [cas.Reader].
func (s *Store) Algorithm() cas.Algorithm { return s.a }

// Kinds implements [cas.Reader].
func (s *Store) Kinds() *cas.Kinds { return s.kinds }

// Get implements [cas.Getter].
func (s *Store) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if err := ctx.Err(); err != nil {
		return cas.Node{}, err
	}
	s.mu.RLock()
	n, ok := s.nodes[h]
	s.mu.RUnlock()
	if !ok {
		return cas.Node{}, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	}
	n.Payload = slices.Clone(n.Payload)
	return n, nil
}

// Has implements [cas.Store].
func (s *Store) Has(ctx context.Context, h cas.Hash) (bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.nodes[h]
	return ok, ctx.Err()
}

// Put implements [cas.Store].
func (s *Store) Put(ctx context.Context, nodes ...cas.Node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		if err := cmp.Or(ctx.Err(), s.a.Check(n)); err != nil {
			return err
		}
		old, ok := s.nodes[n.Hash]
		if ok && !old.Equal(n) {
			return &cas.CollisionError{Hash: n.Hash}
		}
		if !ok {
			n.Payload = slices.Clone(n.Payload)
			s.nodes[n.Hash] = n
		}
	}
	return nil
}

// Commit implements [cas.Store].
func (s *Store) Commit(ctx context.Context, nodes ...cas.Node) error { return s.Put(ctx, nodes...) }

// All implements [cas.Store]. It lists the nodes that exist when it begins.
func (s *Store) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		s.mu.RLock()
		hashes := slices.Sorted(maps.Keys(s.nodes))
		s.mu.RUnlock()
		for _, h := range hashes {
			if !strings.HasPrefix(string(h), prefix) {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}
