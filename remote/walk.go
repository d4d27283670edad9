package remote

import (
	"context"
	"errors"
	"iter"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// Walk is [Remote.Walk] for whoever has a store.
func Walk(ctx context.Context, r cas.Reader, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		known, count := set(have), 0
		err := cas.BottomUp(ctx, r, roots, cas.BottomUpOptions{Known: known.has}, func(v cas.Visited) error {
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

var errLeft = errors.New("nobody listens any more")

// Missing makes a walk's error for a node that is not there a [*MissingError].
func Missing(err error) error {
	var at *cas.VisitError
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

// Whole reports whether a store has all that a head leads to; all below was is there,
// because a thread has stood there. Errors: [*MissingError]; [*FaultError] if it is no
// head of a thread.
func Whole(ctx context.Context, r cas.Reader, head, was cas.Hash) error {
	known := hashes{}
	if was != "" {
		known[was] = true
		n, err := r.Get(ctx, was)
		if err != nil {
			return err
		}
		refs, err := cas.Refs(ctx, r, n)
		if err != nil {
			return err
		}
		for _, h := range refs {
			known[h] = true // a step that takes the place of another has the same start
		}
	}
	err := cas.BottomUp(ctx, r, []cas.Hash{head}, cas.BottomUpOptions{Known: known.has}, func(v cas.Visited) error {
		if v.Tombstone == nil {
			return nil
		}
		kind, _, _ := r.Kinds().Of(ctx, r, v.Tombstone.Type)
		if v.Node.Hash == head || v.Tombstone.Type == r.Kinds().MetaHash() ||
			kind == protocol.KindStep || kind == protocol.KindStart || kind == protocol.KindWorkflow {
			return Faultf("node %s was redacted, and no thread can do without it", v.Node.Hash)
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
		err = Faultf("node %s is neither a step nor a start: no thread can stand there", head)
	}
	return err
}
