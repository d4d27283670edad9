package bundle

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/cas"
)

// original notes the place in the chain of a step that the original wrote, so that one of
// our steps may follow it: such a node does not say its place, but its predecessor has been
// visited already. Other nodes are ignored.
func (c *check) original(ctx context.Context, n cas.Node) error {
	s, ok, err := cas.OriginalStep(ctx, c.file, n)
	if err != nil || !ok {
		return err
	}
	here := place{start: s.Start}
	if s.Prev != nil {
		prev, ok := c.steps[*s.Prev]
		switch {
		case !ok:
			return fmt.Errorf("its previous node %s is not a step", *s.Prev)
		case prev.start != s.Start:
			return fmt.Errorf("its previous step %s belongs to another start, %s", *s.Prev, prev.start)
		}
		here.index = prev.index + 1
	}
	c.steps[n.Hash] = here
	return nil
}
