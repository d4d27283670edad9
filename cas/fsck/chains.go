package fsck

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
)

// step is the place of a step in its chain.
type step struct {
	start, prev cas.Hash
	index       int
}

// unplaced is the index of a step of the original's, which does not say it.
const unplaced = -1

func newStep(s protocol.Step) *step {
	out := &step{start: s.Start, index: s.Index}
	if s.Prev != nil {
		out.prev = *s.Prev
	}
	return out
}

// chains checks that each step fits the one before it.
func (c *check) chains() {
	for id, s := range c.steps {
		h := c.graph.Hash(id)
		wrong := func(format string, args ...any) {
			c.fault(Fault{Kind: Chain, Hash: h, Path: c.store.Path(h), Message: fmt.Sprintf(format, args...)})
		}
		if s.index != unplaced && (s.index == 0) != (s.prev == "") {
			wrong("its index is %d, but only the first step, 0, has no previous one", s.index)
			continue
		}
		for _, link := range []cas.Hash{s.prev, s.start} {
			if c.isRedacted(link) {
				wrong("node %s, which its chain needs, was redacted", link)
			}
		}
		if s.prev == "" {
			continue
		}
		prevID, ok := c.graph.ID(s.prev)
		if !ok {
			continue // missing, or put since
		}
		prev, ok := c.steps[prevID]
		switch {
		case !ok:
			if n, err := c.store.Get(context.Background(), s.prev); err == nil && !c.is(n.Type, protocol.KindStep) {
				wrong("its previous node %s is not a step", s.prev)
			}
		case prev.start != s.start:
			wrong("its previous step %s belongs to another start, %s", s.prev, prev.start)
		case s.index != unplaced && c.indexOf(prevID) != s.index-1:
			wrong("its index is %d, but that of its previous step %s is %d", s.index, s.prev, c.indexOf(prevID))
		}
	}
}

// indexOf is the index of a step, counted back to a step that says its own.
// It is asked only where our steps follow the original's.
func (c *check) indexOf(id census.ID) int {
	n := 0
	seen := map[census.ID]bool{}
	for !seen[id] {
		seen[id] = true
		s := c.steps[id]
		if s.index != unplaced {
			return s.index + n
		}
		prev, ok := c.graph.ID(s.prev)
		if s.prev == "" || !ok {
			break
		}
		id, n = prev, n+1
	}
	return n
}

// is reports whether a type is one of some kinds.
func (c *check) is(typ cas.Hash, kinds ...protocol.Kind) bool {
	kind, _, err := c.store.Kinds().Of(context.Background(), knowing{c.store}, typ)
	return err == nil && slices.Contains(kinds, kind)
}
