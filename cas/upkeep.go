package cas

import (
	"context"
	"iter"
	"time"
)

// Compactor is a store from which nodes can be removed.
type Compactor interface {
	// Compact begins a compaction of what was put before a time. Only one process at a time compacts a store;
	// others wait. dry changes nothing, and the compaction can't be finished.
	Compact(ctx context.Context, before time.Time, dry bool) (Compaction, error)
}

// Compaction removes nodes from a store while others use it.
type Compaction interface {
	// Nodes yields all nodes, in any order.
	Nodes(ctx context.Context) iter.Seq2[Item, error]
	// New yields the nodes put since Nodes listed all, also those put again.
	New(ctx context.Context) iter.Seq2[Hash, error]
	// Write prepares the removal of all nodes for which keep returns false. It changes nothing that readers see.
	Write(ctx context.Context, keep func(Hash) bool) error
	// Finish stops writers, calls recheck, and removes the nodes for which keep returned false in Write, and
	// still does.
	Finish(ctx context.Context, recheck func() error, keep func(Hash) bool) error
	// Release ends the compaction, finished or not.
	Release() error
}

// Item is a node of a store that is being compacted.
type Item struct {
	Hash      Hash
	Size      int64     // in bytes
	At        time.Time // of its last put, or later; in the future if it stays in any case
	Tombstone bool
}
