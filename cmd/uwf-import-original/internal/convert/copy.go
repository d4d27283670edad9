package convert

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
)

// copier copies nodes with all that they lead to, types included.
type copier struct {
	from      cas.Store
	to        cas.Store
	dryRun    bool
	count     *Count
	inspector *cas.Inspector

	whole map[cas.Hash]bool   // these lead to nothing that is missing, and are copied or will be
	bad   map[cas.Hash]string // these cannot be copied, and why

	waiting []cas.Node // to be written at once
	bytes   int
}

// A write of many nodes costs one flush; what waits for it is bounded.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 32 << 20
)

func newCopier(from, to cas.Store, dryRun bool, count *Count) *copier {
	return &copier{
		from: from, to: to, dryRun: dryRun, count: count, inspector: cas.NewInspector(from),
		whole: map[cas.Hash]bool{}, bad: map[cas.Hash]string{},
	}
}

// reach copies everything that root leads to. It returns the nodes that cannot be
// copied; the others are, whatever happens to these. They are durable after the
// next flush.
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

// one copies one node, unless it is known to be bad, and returns what it refers to.
func (c *copier) one(ctx context.Context, h cas.Hash) ([]cas.Hash, error) {
	if c.bad[h] != "" || h == c.to.Kinds().MetaHash() { // every store has the meta-schema
		return nil, nil
	}
	n, err := c.from.Get(ctx, h)
	if err == nil {
		// What only the original's own decoder reads cannot be put into our store.
		err = c.from.Algorithm().Check(n)
	}
	if err != nil {
		return nil, c.reject(ctx, h, err)
	}
	refs, err := c.inspector.Refs(ctx, n)
	if err != nil && !isOfNode(err) {
		return nil, c.reject(ctx, h, err)
	}
	// A node whose type is lost is copied; its type will be found to be bad.
	return append(refs, n.Type), c.put(ctx, n)
}

// reject remembers that a node cannot be copied. A ctx that has ended is no fault
// of the node's.
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
		c.count.Brought++
	}
	if c.dryRun {
		return nil
	}
	c.waiting = append(c.waiting, n) // also one that is there: it becomes durable, and young
	c.bytes += len(n.Payload)
	if len(c.waiting) < maxWaiting && c.bytes < maxWaitingBytes {
		return nil
	}
	return c.flush(ctx)
}

// flush makes all that was copied durable.
func (c *copier) flush(ctx context.Context) error {
	if err := c.to.Commit(ctx, c.waiting...); err != nil {
		return fmt.Errorf("write nodes: %w", err)
	}
	c.waiting, c.bytes = c.waiting[:0], 0
	return nil
}
