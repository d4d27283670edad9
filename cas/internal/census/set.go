// Package census represents all nodes of a store and their references compactly. A million nodes with ten
// million refs take about 100 MB.
package census

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// ID numbers the nodes of a census from 0, in the order of their hashes.
type ID = uint32

// Set is a sorted list of hashes, as numbers.
type Set struct{ sorted []uint64 }

// List lists the nodes of a store. It passes errors to fault; the set lacks the affected nodes.
func List(ctx context.Context, s cas.Store, fault func(error)) (Set, error) {
	var set Set
	for h, err := range s.All(ctx, "") {
		if ctx.Err() != nil {
			return set, ctx.Err()
		}
		if err != nil {
			fault(err)
			continue
		}
		set.sorted = append(set.sorted, h.Number())
	}
	// A listing is sorted except for directories that changed concurrently.
	if !slices.IsSorted(set.sorted) {
		slices.Sort(set.sorted)
	}
	return set, ctx.Err()
}

// Of returns the set of hashes given as sorted numbers.
func Of(sorted []uint64) Set { return Set{sorted} }

// Len returns the number of nodes.
func (s Set) Len() int { return len(s.sorted) }

// Hash returns the hash of a node.
func (s Set) Hash(id ID) cas.Hash { return protocol.HashOf(s.sorted[id]) }

// ID returns the number of a node; h must be valid.
func (s Set) ID(h cas.Hash) (ID, bool) {
	i, ok := slices.BinarySearch(s.sorted, h.Number())
	return ID(i), ok
}
