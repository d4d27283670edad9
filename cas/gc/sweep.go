package gc

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/internal/census"
)

// sweep removes garbage in rounds. In each round it has exclusive access to the store, and rechecks
// everything that has changed since the survey before it removes the first file.
func (c *collection) sweep(ctx context.Context) error {
	for first := true; ; first = false {
		more, err := c.round(ctx, first)
		if err != nil {
			return err
		}
		if !more {
			c.report.Reachable = c.report.Nodes - c.report.Freed
			for _, home := range c.options.Homes {
				sweepLocks(ctx, home)
			}
			return nil
		}
	}
}

func (c *collection) round(ctx context.Context, first bool) (more bool, err error) {
	sole, err := c.store.LockExclusive(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, sole.Release()) }()
	if err := c.markRoots(ctx); err != nil {
		return false, err
	}
	if err := c.markNew(ctx); err != nil {
		return false, err
	}
	if err := c.markRenewed(ctx); err != nil {
		return false, err
	}
	if first {
		if err := c.removeTemporary(ctx, sole); err != nil {
			return false, err
		}
	}
	more, err = c.remove(ctx, sole)
	if err != nil || more {
		return more, err
	}
	return false, c.removeSeals(ctx, sole)
}

// removeSeals removes the seals of deleted nodes, which prove nothing. The seal of a needed but missing node
// stays, because it shows what is missing.
func (c *collection) removeSeals(ctx context.Context, sole *fsstore.Exclusive) error {
	return c.deadSeals(ctx, func(h cas.Hash) error {
		removed, err := sole.RemoveSeal(h)
		if removed {
			c.report.Seals++
		}
		return err
	})
}

// isDead reports whether a node is garbage, or missing and not needed.
func (c *collection) isDead(ctx context.Context, h cas.Hash) (bool, error) {
	if c.marks.marked(h) {
		return false, nil
	}
	if c.marks.isGarbage(h) {
		return true, nil
	}
	there, err := c.store.Has(ctx, h) // it might have been put again
	return !there, err
}

// deadSeals calls found for the seal of each node that is garbage or missing.
func (c *collection) deadSeals(ctx context.Context, found func(cas.Hash) error) error {
	for h, err := range c.store.Seals(ctx) {
		if err != nil {
			return err
		}
		dead, err := c.isDead(ctx, h)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		if err := found(h); err != nil {
			return err
		}
	}
	return nil
}

// markNew marks nodes put since the survey and what they reference: a new node might reference one that was
// garbage until then.
func (c *collection) markNew(ctx context.Context) error {
	for h, err := range c.store.All(ctx, "") {
		if err != nil {
			return err
		}
		if _, old := c.nodes.ID(h); old {
			continue
		}
		if err := c.marks.from(ctx, h, false); err != nil {
			return err
		}
	}
	return nil
}

// markRenewed marks nodes put again since the survey.
func (c *collection) markRenewed(ctx context.Context) error {
	for id := range c.marks.unmarked() {
		h := c.nodes.Hash(id)
		size, at, err := c.store.Stat(h)
		if errors.Is(err, fs.ErrNotExist) {
			c.sizes[id] = gone
			continue
		}
		if err != nil {
			return err
		}
		c.sizes[id] = size
		if at.Before(c.cutoff) {
			continue
		}
		if err := c.marks.from(ctx, h, false); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// remove removes unmarked nodes, at most one round.
func (c *collection) remove(ctx context.Context, sole *fsstore.Exclusive) (more bool, err error) {
	done, most := 0, max(perRound, c.marks.garbage()/4)
	var removed []cas.Hash
	defer func() {
		for _, h := range removed {
			c.marks.remove(h) // already removed
		}
	}()
	for id := range c.marks.unmarked() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if done == most {
			return true, nil
		}
		h := c.nodes.Hash(id)
		keep, err := c.isRedactedHere(ctx, id)
		if err != nil {
			return false, err
		}
		if keep {
			c.marks.set(h)
			continue
		}
		err = sole.Remove(h)
		removed = append(removed, h)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		done++
		c.report.Freed++
		c.report.FreedSize += max(c.sizes[id], 0)
	}
	return false, nil
}

// isRedactedHere reports whether a node is a tombstone created here. It stays even if nothing needs it,
// because without it an import would restore the redacted content. It takes a few hundred bytes.
func (c *collection) isRedactedHere(ctx context.Context, id census.ID) (bool, error) {
	if c.sizes[id] > cas.MaxTombstone {
		return false, nil
	}
	_, err := c.store.Get(ctx, c.nodes.Hash(id))
	redacted, ok := cas.AsRedacted(err)
	return ok && !redacted.Tombstone.Foreign, ctx.Err()
}

// removeTemporary removes temporary files of killed writers. No process is writing now; recent files stay
// anyway.
func (c *collection) removeTemporary(ctx context.Context, sole *fsstore.Exclusive) error {
	for stray, err := range c.store.Strays(ctx) {
		if err != nil {
			return err
		}
		if stray.Hash != "" || !stray.At.Before(c.cutoff) {
			continue
		}
		if err := sole.RemoveTemp(stray.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.report.Temporary++
		c.report.FreedSize += stray.Size
	}
	return nil
}
