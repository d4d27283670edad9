package seal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
)

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
