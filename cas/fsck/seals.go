package fsck

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/cas/seal"
)

// Tombstone is a redacted node. Sealed means that a stored seal proves it; otherwise anyone
// who can write here could have made it.
type Tombstone struct {
	Hash    cas.Hash `json:"hash"`
	Type    cas.Hash `json:"type"`
	Path    string   `json:"path"`
	Reason  string   `json:"reason"`
	At      int64    `json:"redactedAt"` // ms
	Sealed  bool     `json:"sealed"`
	Foreign bool     `json:"foreign,omitempty"` // an import brought it: it was not made here
	Threads []string `json:"threads"`           // the first that lead to it
}

// bury notes a tombstone.
func (c *check) bury(id census.ID, t cas.Tombstone) {
	c.redacted[id] = len(c.report.Tombstones)
	c.report.Tombstones = append(c.report.Tombstones, Tombstone{
		Hash: t.Hash, Type: t.Type, Path: c.store.Path(t.Hash), Reason: t.Reason, At: t.At, Foreign: t.Foreign, Threads: []string{},
	})
}

func (c *check) isRedacted(h cas.Hash) bool {
	id, ok := c.graph.ID(h)
	if ok {
		_, ok = c.redacted[id]
	}
	return ok
}

// seals compares every stored seal with the content, and notes which tombstones are sealed.
// One change is one fault: a seal that differs only because one below it differs is not
// reported.
func (c *check) seals(ctx context.Context) error {
	sealer := seal.New(knowing{c.store}, seal.Options{})
	for h, err := range c.store.Seals(ctx) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.fault(Fault{Kind: Unreadable, Path: c.store.Dir(), Message: err.Error()})
		default:
			c.report.Seals++
			c.sealOf(ctx, sealer, h)
		}
	}
	slices.SortFunc(c.report.Tombstones, func(a, b Tombstone) int { return cmp.Compare(a.Hash, b.Hash) })
	return nil
}

func (c *check) sealOf(ctx context.Context, sealer *seal.Sealer, h cas.Hash) {
	kept, err := c.store.Seal(h)
	if _, ok := errors.AsType[*cas.SealError](err); ok {
		c.fault(Fault{Kind: Seal, Hash: h, Path: c.store.SealPath(h), Message: err.Error()})
		return
	}
	if err != nil {
		c.fault(Fault{Kind: Unreadable, Hash: h, Path: c.store.SealPath(h), Message: err.Error()})
		return
	}
	got, err := sealer.Seal(ctx, h)
	if seal.IsUnsealed(err) && c.isRedacted(h) {
		c.fault(Fault{Kind: Seal, Hash: h, Path: c.store.Path(h), Message: "the node was sealed, but its tombstone does not name the seal: anyone could have made it"})
		return
	}
	switch {
	case err == nil && got == kept:
		if id, ok := c.graph.ID(h); ok && c.isRedacted(h) {
			c.report.Tombstones[c.redacted[id]].Sealed = true
		}
	case err != nil && !seal.IsUnsealed(err):
		// Something below is missing or damaged, which is reported with it.
	case c.inherits(ctx, h, kept, sealer):
	default:
		c.fault(Fault{Kind: Seal, Hash: h, Path: c.store.SealPath(h), Message: (&cas.SealError{Hash: h, Want: kept, Got: got}).Error()})
	}
}

// inherits reports whether a node fits its seal, given the stored seals of what it needs.
func (c *check) inherits(ctx context.Context, h cas.Hash, kept cas.Seal, sealer *seal.Sealer) bool {
	n, err := c.store.Get(ctx, h)
	if err != nil {
		return false
	}
	refs, err := cas.Refs(ctx, c.store, n)
	if err != nil {
		return false
	}
	var below []cas.Seal
	for _, need := range cas.Needs(n, refs) {
		s, err := c.store.Seal(need)
		if err != nil || s.IsZero() {
			s = sealer.Of(need)
		}
		below = append(below, s)
	}
	return cas.SealOf(n, below) == kept
}
