// Package seal computes seals: one SHA-256 for a node and everything it references ([cas.SealOf]). A seal
// recorded outside a store later proves that a whole run is unchanged, even to someone who doesn't trust the
// store or its hash function.
//
// Sealed nodes needn't be read again, so sealing a thread that has grown costs only its new nodes.
package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
)

// Sealer seals many nodes and computes each seal once. It is not safe for concurrent use.
type Sealer struct {
	reader   cas.Reader
	options  Options
	done     map[cas.Hash]cas.Seal
	unsealed cas.Hash // the last tombstone without a seal
}

// Options configures a Sealer. The zero value works.
type Options struct {
	// Known returns trusted seals, zero for a node without one; nil: compute everything from content.
	Known func(cas.Hash) (cas.Seal, error)
	// Fresh is called with each computed seal, those below a node before its own.
	Fresh func(cas.Hash, cas.Seal) error
}

// New returns a Sealer for the nodes of r.
func New(r cas.Reader, o Options) *Sealer {
	return &Sealer{reader: r, options: o, done: map[cas.Hash]cas.Seal{}}
}

// UnsealedError means that a node is a tombstone without a seal, or references one, so that it has no seal.
type UnsealedError struct{ Hash cas.Hash }

func (e *UnsealedError) Error() string {
	return fmt.Sprintf("node %s has no seal: it depends on a redacted node without a seal", e.Hash)
}

// Seal returns the seal of a node. It returns the errors of [graph.BottomUp], of Known and Fresh;
// [*UnsealedError].
func (s *Sealer) Seal(ctx context.Context, root cas.Hash) (cas.Seal, error) {
	err := graph.BottomUp(ctx, s.reader, []cas.Hash{root}, graph.BottomUpOptions{Known: s.known}, s.Visit)
	if err == nil && s.done[root].IsZero() {
		err = &UnsealedError{Hash: s.unsealed}
	}
	if err != nil {
		return cas.Seal{}, fmt.Errorf("seal %s: %w", root, err)
	}
	return s.done[root], nil
}

// Of returns a computed or known seal, zero if there is none.
func (s *Sealer) Of(h cas.Hash) cas.Seal { return s.done[h] }

// known reports whether a node needn't be read.
func (s *Sealer) known(h cas.Hash) (bool, error) {
	if _, ok := s.done[h]; ok {
		return true, nil
	}
	if s.options.Known == nil {
		return false, nil
	}
	kept, err := s.options.Known(h)
	if err != nil || kept.IsZero() {
		return false, err
	}
	s.done[h] = kept
	return true, nil
}

// Visit seals a node in a [graph.BottomUp] walk and must be called for all its nodes. A node that references a
// tombstone without a seal gets none.
func (s *Sealer) Visit(v graph.Visited) error {
	var seal cas.Seal
	if v.Tombstone != nil {
		if seal = v.Tombstone.Seal; seal.IsZero() {
			s.unsealed = v.Node.Hash
		}
	} else if below, ok := s.below(v.Needs); ok {
		seal = cas.SealOf(v.Node, below)
	}
	s.done[v.Node.Hash] = seal
	if s.options.Fresh == nil || seal.IsZero() {
		return nil
	}
	return s.options.Fresh(v.Node.Hash, seal)
}

func (s *Sealer) below(needs []cas.Hash) (seals []cas.Seal, ok bool) {
	seals = make([]cas.Seal, len(needs))
	for i, h := range needs {
		if seals[i] = s.done[h]; seals[i].IsZero() {
			return nil, false
		}
	}
	return seals, true
}

// IsUnsealed reports whether an error is an [*UnsealedError].
func IsUnsealed(err error) bool {
	var unsealed *UnsealedError
	return errors.As(err, &unsealed)
}

// Store is a store that keeps seals.
type Store interface {
	cas.Store
	// Seal returns the stored seal of a node, zero without one.
	Seal(h cas.Hash) (cas.Seal, error)
	// KeepSeals stores seals durably. It returns a [*cas.SealError] if a node already has a different one.
	KeepSeals(ctx context.Context, seals map[cas.Hash]cas.Seal) error
	// Originals reports whether it belongs to the original, and can't keep any.
	Originals() bool
}

// Keeper seals nodes of a store and stores the seals there. It trusts stored seals.
type Keeper struct {
	store  Store
	sealer *Sealer
	fresh  map[cas.Hash]cas.Seal
	// New is the number of newly sealed nodes.
	New int
}

// NewKeeper returns a Keeper for a store.
func NewKeeper(s Store) *Keeper {
	k := &Keeper{store: s, fresh: map[cas.Hash]cas.Seal{}}
	k.sealer = New(s, Options{Known: s.Seal, Fresh: func(h cas.Hash, seal cas.Seal) error {
		k.New++
		k.fresh[h] = seal
		return nil
	}})
	return k
}

// Seal returns the seal of a node; [Keeper.Flush] stores new ones. It returns the errors of [Sealer.Seal].
func (k *Keeper) Seal(ctx context.Context, h cas.Hash) (cas.Seal, error) {
	return k.sealer.Seal(ctx, h)
}

// Flush makes the seals durable. It returns the errors of KeepSeals.
func (k *Keeper) Flush(ctx context.Context) error {
	err := k.store.KeepSeals(ctx, k.fresh)
	if err == nil {
		clear(k.fresh)
	}
	return err
}

// Kept is the result of [Keep].
type Kept struct {
	Seal cas.Seal
	New  int   // number of newly sealed nodes whose seals are now in the store
	Err  error // why the seals could not be stored; nil if they were
}

// Keep seals a node and stores the seals where supported. It returns the errors of [Sealer.Seal].
func Keep(ctx context.Context, s cas.Store, h cas.Hash) (k Kept, err error) {
	files, ok := s.(Store)
	if !ok || files.Originals() {
		k.Err = errors.New("the store cannot keep seals")
		k.Seal, err = New(s, Options{}).Seal(ctx, h)
		return k, err
	}
	keeper := NewKeeper(files)
	if k.Seal, err = keeper.Seal(ctx, h); err != nil {
		return k, err
	}
	if err = keeper.Flush(ctx); errors.Is(err, fs.ErrPermission) {
		k.Err, err = err, nil
	} else {
		k.New = keeper.New
	}
	return k, err
}
