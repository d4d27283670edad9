package storeremote

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/durable"
)

// Missing implements [remote.Remote].
func (r *Remote) Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error) {
	if err := cmp.Or(ctx.Err(), remote.CheckHashes(hashes)); err != nil {
		return nil, err
	}
	var missing []cas.Hash
	for _, h := range hashes {
		there, err := r.find(ctx, h)
		if err != nil && there != damaged {
			return nil, err
		}
		if there == nothing || there == damaged {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// Walk implements [remote.Remote].
func (r *Remote) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return remote.Walk(ctx, r.store, roots, have)
}

// Get implements [remote.Remote].
func (r *Remote) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	return func(yield func(remote.Record, error) bool) {
		if err := cmp.Or(ctx.Err(), remote.CheckHashes(hashes)); err != nil {
			yield(remote.Record{}, err)
			return
		}
		for _, h := range hashes {
			record, err := r.get(ctx, h)
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func (r *Remote) get(ctx context.Context, h cas.Hash) (remote.Record, error) {
	n, err := r.store.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		t := redacted.Tombstone
		t.Foreign = false // whoever takes it says so
		file, err := cas.MarshalTombstone(t)
		return remote.Record{Hash: h, File: file}, err
	}
	if errors.Is(err, cas.ErrNotFound) {
		err = &remote.MissingError{Hash: string(h)}
	}
	return remote.Record{Hash: h, File: cas.MarshalFile(n)}, err
}

// Put implements [remote.Remote].
func (r *Remote) Put(ctx context.Context, records []remote.Record) (different []cas.Hash, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckBatch(records)); err != nil || len(records) == 0 {
		return nil, err
	}
	batch, err := r.checked(ctx, records)
	if err != nil {
		return nil, err
	}
	if err := r.store.Make(ctx, r.nowMs()); err != nil {
		return nil, err
	}
	// A tombstone that comes from elsewhere gives way to a put of the content. Whoever
	// puts some is alone, so that nobody finds nothing here and writes over one later. So
	// is whoever mends a node, lest another one take away what was put.
	if len(batch.tombstones) == 0 {
		different, err = r.putUnder(ctx, durable.LockShared, r.store.Commit, batch)
	}
	if damage := (*cas.CorruptError)(nil); len(batch.tombstones) > 0 || errors.As(err, &damage) {
		return r.putUnder(ctx, durable.LockAlone, r.store.Mend, batch)
	}
	return different, err
}

// putUnder puts a batch under a lock.
func (r *Remote) putUnder(ctx context.Context, lock locking, commit func(context.Context, ...cas.Node) error, b batch) (different []cas.Hash, err error) {
	held, err := r.lock(ctx, "remote-put", lock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	release, err := r.store.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return r.put(ctx, commit, b)
}

// batch is what was sent.
type batch struct {
	nodes      []cas.Node
	tombstones []cas.Tombstone
}

// checked holds records against their hashes.
func (r *Remote) checked(ctx context.Context, records []remote.Record) (b batch, err error) {
	for _, record := range records {
		n, t, err := record.Check(r.store.Algorithm())
		if err == nil && t == nil {
			err = r.titled(ctx, n)
		}
		switch {
		case err != nil:
			return b, err
		case t != nil:
			b.tombstones = append(b.tombstones, *t)
		default:
			b.nodes = append(b.nodes, n)
		}
	}
	return b, nil
}

// titled refuses a schema that is titled as if it were one of ours.
func (r *Remote) titled(ctx context.Context, n cas.Node) error {
	err := cas.CheckTitle(r.store.Kinds(), n)
	if err == nil {
		return nil
	}
	kind, _, _ := r.store.Kinds().Of(ctx, with{r.store, n}, n.Hash)
	if kind != "" {
		return nil // a version that a newer uwf has made
	}
	return err
}

// with is a store that has one node more.
type with struct {
	cas.Reader
	node cas.Node
}

// Get implements [cas.Getter].
func (w with) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if h == w.node.Hash {
		return w.node, nil
	}
	return w.Reader.Get(ctx, h)
}

func (r *Remote) put(ctx context.Context, commit func(context.Context, ...cas.Node) error, b batch) (different []cas.Hash, err error) {
	whole := make([]cas.Node, 0, len(b.nodes))
	for _, n := range b.nodes {
		there, err := r.find(ctx, n.Hash)
		if err != nil && there != damaged {
			return nil, err
		}
		if there == redacted {
			different = append(different, n.Hash)
			continue
		}
		whole = append(whole, n)
	}
	if err := commit(ctx, whole...); err != nil {
		return nil, err
	}
	r.recent.remember(whole)
	missing := b.tombstones[:0]
	for _, t := range b.tombstones {
		there, err := r.find(ctx, t.Hash)
		if err != nil {
			return nil, err
		}
		switch there {
		case present:
			different = append(different, t.Hash)
		case nothing:
			missing = append(missing, t)
		}
	}
	_, err = r.store.Bury(ctx, missing...)
	return different, err
}

// What is found under a hash.
type found byte

const (
	nothing found = iota
	present
	redacted
	damaged // with the error
)

func (r *Remote) find(ctx context.Context, h cas.Hash) (found, error) {
	_, err := r.store.Get(ctx, h)
	var corrupt *cas.CorruptError
	switch _, gone := cas.AsRedacted(err); {
	case gone:
		return redacted, nil
	case errors.Is(err, cas.ErrNotFound):
		return nothing, nil
	case errors.As(err, &corrupt) && corrupt.Cut:
		return nothing, nil // a put rewrites it
	case errors.As(err, &corrupt):
		return damaged, err
	}
	return present, err
}
