package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/protocol"
)

// Definition returns the workflow that a person means, as [Catalog.Find] does, but
// stores nothing: it is for those who only look.
func (c *Catalog) Definition(ctx context.Context, name string) (workflow.Definition, error) {
	arg := strings.TrimSpace(name)
	if !protocol.Hash(arg).Valid() {
		if isPath(arg) {
			return c.Read(ctx, arg)
		}
		found, err := c.Project()
		if err != nil {
			return workflow.Definition{}, err
		}
		for _, f := range found {
			if f.Name == arg {
				def, _, err := c.readProject(ctx, f)
				return def, err
			}
		}
	}
	h, err := c.Find(ctx, arg)
	if err != nil {
		return workflow.Definition{}, err
	}
	return c.Stored(ctx, h)
}

// Stored reads a stored workflow with the schemas of its roles.
func (c *Catalog) Stored(ctx context.Context, h cas.Hash) (workflow.Definition, error) {
	s, err := c.Store(ctx)
	if err != nil {
		return workflow.Definition{}, err
	}
	w, err := cas.Read[protocol.Workflow](ctx, s, h)
	if err != nil {
		return workflow.Definition{}, err
	}
	def, err := workflowtext.Restore(w, func(h protocol.Hash) (any, error) {
		n, err := s.Get(ctx, h)
		if err != nil {
			return nil, err
		}
		return n.Value()
	})
	if err != nil {
		return workflow.Definition{}, fmt.Errorf("workflow %s: %w", h, err)
	}
	return def, nil
}

// Hash is the hash that a definition has, or would be stored under. Nothing is stored.
func (c *Catalog) Hash(ctx context.Context, def workflow.Definition) (cas.Hash, error) {
	_, h, err := c.nodes(ctx, def)
	return h, err
}
