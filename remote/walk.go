package remote

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
)

// Walk implements [Remote.Walk] for a store.
func Walk(ctx context.Context, r cas.Reader, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		known, count := set(have), 0
		err := graph.BottomUp(ctx, r, roots, graph.BottomUpOptions{Known: known.has}, func(v graph.Visited) error {
			if count++; count > MaxNodes {
				return Faultf("more than %d nodes", MaxNodes)
			}
			if !yield(v.Node.Hash, nil) {
				return errLeft
			}
			return nil
		})
		if err != nil && !errors.Is(err, errLeft) {
			yield("", Missing(err))
		}
	}
}

var errLeft = errors.New("the receiver has stopped")

// Missing converts a walk's error about a missing node to a [*MissingError].
func Missing(err error) error {
	var at *graph.VisitError
	if errors.Is(err, cas.ErrNotFound) && errors.As(err, &at) {
		return &MissingError{Hash: string(at.Hash)}
	}
	return err
}

type hashes map[cas.Hash]bool

func set(list []cas.Hash) hashes {
	s := make(hashes, len(list))
	for _, h := range list {
		s[h] = true
	}
	return s
}

func (s hashes) has(h cas.Hash) (bool, error) { return s[h], nil }

// CheckComplete checks that a store contains everything reachable from head. It assumes that everything below was is
// there, because was has been the thread's head. Errors are [*MissingError], and [*FaultError] if head cannot
// be the head of a thread.
func CheckComplete(ctx context.Context, r cas.Reader, head, was cas.Hash) error {
	known := hashes{}
	if was != "" {
		known[was] = true
		n, err := r.Get(ctx, was)
		if err != nil {
			return err
		}
		refs, err := graph.Refs(ctx, r, n)
		if err != nil {
			return err
		}
		for _, h := range refs {
			known[h] = true // a step that replaces another one has the same start
		}
	}
	err := graph.BottomUp(ctx, r, []cas.Hash{head}, graph.BottomUpOptions{Known: known.has}, func(v graph.Visited) error {
		if v.Tombstone == nil {
			return nil
		}
		kind, _, _ := r.Kinds().Of(ctx, r, v.Tombstone.Type)
		if v.Node.Hash == head || v.Tombstone.Type == r.Kinds().MetaHash() ||
			kind == protocol.KindStep || kind == protocol.KindStart || kind == protocol.KindWorkflow {
			return Faultf("node %s was redacted, but the thread needs it", v.Node.Hash)
		}
		return nil
	})
	if err != nil {
		return Missing(err)
	}
	n, err := r.Get(ctx, head)
	if err != nil {
		return err
	}
	kind, _, err := r.Kinds().Of(ctx, r, n.Type)
	if err == nil && kind != protocol.KindStep && kind != protocol.KindStart {
		err = Faultf("node %s is neither a step nor a thread start", head)
	}
	return err
}

// GetAll is like [Remote.Get] for any number of hashes.
func GetAll(ctx context.Context, r Remote, hashes []cas.Hash) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for part := range slices.Chunk(hashes, MaxHashes) {
			for record, err := range r.Get(ctx, part) {
				if !yield(record, err) || err != nil {
					return
				}
			}
		}
	}
}

// PutAll is like [Remote.Put] for any number of records, in batches. It stops at the first yielded error.
func PutAll(ctx context.Context, r Remote, records iter.Seq2[Record, error]) (different []cas.Hash, err error) {
	var batch []Record
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		found, err := r.Put(ctx, batch)
		different = append(different, found...)
		batch, size = nil, 0
		return err
	}
	for record, err := range records {
		if err != nil {
			return different, err
		}
		if len(batch) == MaxHashes || len(batch) > 0 && size+len(record.File) > MaxBatch {
			if err := flush(); err != nil {
				return different, err
			}
		}
		batch, size = append(batch, record), size+len(record.File)
	}
	return different, flush()
}

// CheckBatch returns an error if the records exceed the limits of a Put.
func CheckBatch(records []Record) error {
	size, seen := 0, make(hashes, len(records))
	for _, r := range records {
		if !r.Hash.Valid() || seen[r.Hash] {
			return Faultf("%q is not a hash or is a duplicate", r.Hash)
		}
		seen[r.Hash] = true
		size += len(r.File)
	}
	if len(records) > MaxHashes || len(records) > 1 && size > MaxBatch {
		return Faultf("%d nodes with %d bytes exceed the limit of %d with %d per call", len(records), size,
			MaxHashes, MaxBatch)
	}
	return nil
}
