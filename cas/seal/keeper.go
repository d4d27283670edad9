package seal

import (
	"context"

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
