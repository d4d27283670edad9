package seal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// Keeper seals nodes of a store and stores the seals there. It trusts stored seals.
type Keeper struct {
	store  *fsstore.Store
	sealer *Sealer
	fresh  []fsstore.Sealed
	// New is the number of newly sealed nodes.
	New int
}

// perCommit is the number of seals written at once.
const perCommit = 5_000

// NewKeeper returns a Keeper for a store.
func NewKeeper(s *fsstore.Store) *Keeper {
	k := &Keeper{store: s}
	k.sealer = New(s, Options{Known: s.Seal, Fresh: func(h cas.Hash, seal cas.Seal) error {
		k.New++
		k.fresh = append(k.fresh, fsstore.Sealed{Hash: h, Seal: seal})
		return nil
	}})
	return k
}

// Seal returns the seal of a node; [Keeper.Flush] stores new ones. It returns the errors of [Sealer.Seal].
func (k *Keeper) Seal(ctx context.Context, h cas.Hash) (cas.Seal, error) {
	return k.sealer.Seal(ctx, h)
}

// Flush makes the seals durable. It returns the errors of [fsstore.Store.KeepSeals].
func (k *Keeper) Flush(ctx context.Context) error {
	for len(k.fresh) > 0 {
		n := min(len(k.fresh), perCommit)
		if err := k.store.KeepSeals(ctx, k.fresh[:n]...); err != nil {
			return err
		}
		k.fresh = k.fresh[n:]
	}
	return nil
}

// Kept is the result of [Keep].
type Kept struct {
	Seal cas.Seal
	New  int   // number of newly sealed nodes whose seals are now in the store
	Err  error // why the seals could not be stored; nil if they were
}

// Keep seals a node and stores the seals where supported. It returns the errors of [Sealer.Seal].
func Keep(ctx context.Context, s cas.Store, h cas.Hash) (k Kept, err error) {
	files, ok := s.(*fsstore.Store)
	if !ok || files.Originals() {
		k.Err = errors.New("the store cannot keep seals")
		k.Seal, err = New(s, Options{}).Seal(ctx, h)
		return k, err
	}
	release, err := cas.LockShared(ctx, s)
	if err != nil {
		return k, err
	}
	defer func() { _ = release() }() // the end of the process also releases it
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
