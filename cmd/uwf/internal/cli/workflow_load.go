package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/protocol"
)

// definition finds the workflow that a person means, as [app.workflow] does,
// but stores nothing: it is for commands that only look.
func (a *app) definition(ctx context.Context, arg string) (workflow.Definition, error) {
	arg = strings.TrimSpace(arg)
	if !protocol.Hash(arg).Valid() {
		if isPath(arg) {
			return a.readWorkflow(ctx, a.path(arg))
		}
		found, err := a.discover()
		if err != nil {
			return workflow.Definition{}, err
		}
		for _, f := range found {
			if f.Name == arg {
				return a.readFound(ctx, f)
			}
		}
	}
	h, err := a.workflow(ctx, arg)
	if err != nil {
		return workflow.Definition{}, err
	}
	return a.storedDefinition(ctx, h)
}

// storedDefinition reads a stored workflow with the schemas of its roles.
func (a *app) storedDefinition(ctx context.Context, h cas.Hash) (workflow.Definition, error) {
	s, err := a.store(ctx)
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
