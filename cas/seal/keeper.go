package seal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// Keeper seals nodes of a store and keeps the seals there. It believes those that
// are kept already.
type Keeper struct {
	store  *fsstore.Store
	sealer *Sealer
	fresh  []fsstore.Sealed
	// New is how many nodes were sealed that had no seal.
	New int
}

// perCommit is how many seals are written at once.
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

// Seal returns the seal of a node; what is new of it is kept by [Keeper.Flush].
// Errors: those of [Sealer.Seal].
func (k *Keeper) Seal(ctx context.Context, h cas.Hash) (cas.Seal, error) {
	return k.sealer.Seal(ctx, h)
}

// Flush makes the seals durable. Errors: those of [fsstore.Store.KeepSeals].
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

// Kept is a seal of a whole thread.
type Kept struct {
	Seal cas.Seal
	New  int   // nodes that were sealed for the first time, and whose seals are in the store now
	Why  error // the seals could not be kept; nil: they are
}

// Keep seals a node, and keeps the seals where that can be done. Errors: those of [Sealer.Seal].
func Keep(ctx context.Context, s cas.Store, h cas.Hash) (k Kept, err error) {
	files, ok := s.(*fsstore.Store)
	if !ok || files.Originals() {
		k.Why = errors.New("the store cannot keep seals")
		k.Seal, err = New(s, Options{}).Seal(ctx, h)
		return k, err
	}
	release, err := cas.LockShared(ctx, s)
	if err != nil {
		return k, err
	}
	defer func() { _ = release() }() // the end of the process gives it back, too
	keeper := NewKeeper(files)
	if k.Seal, err = keeper.Seal(ctx, h); err != nil {
		return k, err
	}
	if err = keeper.Flush(ctx); errors.Is(err, fs.ErrPermission) {
		k.Why, err = err, nil
	} else {
		k.New = keeper.New
	}
	return k, err
}
