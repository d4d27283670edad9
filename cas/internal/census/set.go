// Package census knows all nodes of a store at once, in a few bytes each: which
// there are, and which refer to which. A million nodes with ten million refs
// take about 100 MB.
package census

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// ID numbers the nodes of a census from 0, in the order of their hashes.
type ID = uint32

// Set is a list of hashes as the numbers that they are.
type Set struct{ sorted []uint64 }

// List lists the nodes of a store. Faults of the listing go to fault; what they
// hide is not in the set.
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
	// A listing is in order but for directories that changed meanwhile.
	if !slices.IsSorted(set.sorted) {
		slices.Sort(set.sorted)
	}
	return set, ctx.Err()
}

// Len is how many there are.
func (s Set) Len() int { return len(s.sorted) }

// Hash is the hash of a node.
func (s Set) Hash(id ID) cas.Hash { return protocol.HashOf(s.sorted[id]) }

// ID finds a node; h must be valid.
func (s Set) ID(h cas.Hash) (ID, bool) {
	i, ok := slices.BinarySearch(s.sorted, h.Number())
	return ID(i), ok
}
