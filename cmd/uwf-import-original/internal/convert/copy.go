package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
)

// copier copies nodes with everything they refer to, including types.
type copier struct {
	from      cas.Store
	to        cas.Store
	dryRun    bool
	count     *Count
	inspector *graph.Inspector

	whole map[cas.Hash]bool   // complete: copied, or about to be, with everything they refer to
	bad   map[cas.Hash]string // cannot be copied, with the reason

	waiting []cas.Node // queued for one write
	bytes   int
}

// Bounds of the write queue: writing many nodes at once costs a single flush.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 32 << 20
)

func newCopier(from, to cas.Store, dryRun bool, count *Count) *copier {
	return &copier{
		from: from, to: to, dryRun: dryRun, count: count, inspector: graph.NewInspector(from),
		whole: map[cas.Hash]bool{}, bad: map[cas.Hash]string{},
	}
}

// reach copies everything reachable from root and returns the nodes that cannot be copied. The others are
// copied in any case and are durable after the next flush.
func (c *copier) reach(ctx context.Context, root cas.Hash) (lost []cas.Hash, err error) {
	seen := map[cas.Hash]bool{root: true}
	queue := []cas.Hash{root}
	for len(queue) > 0 {
		if err := ctx.Err(); err != nil {
			return lost, err
		}
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if c.whole[h] {
			delete(seen, h)
			continue
		}
		refs, err := c.one(ctx, h)
		if err != nil {
			return lost, err
		}
		if c.bad[h] != "" {
			lost = append(lost, h)
		}
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				queue = append(queue, ref)
			}
		}
	}
	if len(lost) == 0 {
		for h := range seen {
			c.whole[h] = true
		}
	}
	return lost, nil
}

// one copies one node unless it is known to be bad, and returns its references.
func (c *copier) one(ctx context.Context, h cas.Hash) ([]cas.Hash, error) {
	if c.bad[h] != "" || h == c.to.Kinds().MetaHash() { // every store contains the meta-schema
		return nil, nil
	}
	n, err := c.from.Get(ctx, h)
	if err == nil {
		// A node that only the original's own decoder accepts cannot be stored here.
		err = c.from.Algorithm().Check(n)
	}
	if err != nil {
		return nil, c.reject(ctx, h, err)
	}
	refs, err := c.inspector.Refs(ctx, n)
	if err != nil && !isOfNode(err) {
		return nil, c.reject(ctx, h, err)
	}
	// A node is copied even if its type is lost; the type is reported as bad.
	return append(refs, n.Type), c.put(ctx, n)
}

// reject records that a node cannot be copied, unless ctx was cancelled.
func (c *copier) reject(ctx context.Context, h cas.Hash, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.bad[h] = err.Error()
	var corrupt *cas.CorruptError
	switch {
	case errors.Is(err, cas.ErrNotFound):
		c.bad[h] = "it is not there"
	case errors.As(err, &corrupt):
		c.bad[h] = corrupt.Reason
	}
	c.count.Failed++
	return nil
}

func (c *copier) put(ctx context.Context, n cas.Node) error {
	there, err := c.to.Has(ctx, n.Hash)
	if err != nil {
		return err
	}
	if there {
		c.count.Present++
	} else {
		c.count.Imported++
	}
	if c.dryRun {
		return nil
	}
	c.waiting = append(c.waiting, n) // even if it exists, to make it durable and recent
	c.bytes += len(n.Payload)
	if len(c.waiting) < maxWaiting && c.bytes < maxWaitingBytes {
		return nil
	}
	return c.flush(ctx)
}

// flush makes all copied nodes durable.
func (c *copier) flush(ctx context.Context) error {
	if err := c.to.Commit(ctx, c.waiting...); err != nil {
		return fmt.Errorf("write nodes: %w", err)
	}
	c.waiting, c.bytes = c.waiting[:0], 0
	return nil
}
