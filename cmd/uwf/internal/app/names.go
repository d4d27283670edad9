package app

import (
	"context"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// names returns a resolver for the home, or for the bundle that replaces it, whose name refers to its only
// thread.
func (a *App) names() (names.Resolver, error) {
	x, err := a.Index()
	r := names.Resolver{
		Heads: x, Store: a.Store, Any: a.Bundle != nil,
		Warn: func(text string) { a.warnOnce(plaintext.Line(text)) },
		Child: func(ctx context.Context, parent, key string) (string, error) {
			e, err := a.Engine(ctx, nil)
			if err != nil {
				return "", err
			}
			return e.Reader.Child(ctx, parent, key)
		},
	}
	if a.Bundle != nil {
		r.Alias = a.Bundle.only
	}
	return r, err
}

// Thread resolves a thread argument.
func (a *App) Thread(ctx context.Context, arg string) (string, error) {
	r, err := a.names()
	if err != nil {
		return "", err
	}
	id, err := r.Thread(ctx, arg)
	return id, err
}

// Node resolves a hash or a unique prefix.
func (a *App) Node(ctx context.Context, arg string) (cas.Hash, error) {
	h, err := names.Resolver{Store: a.Store}.Node(ctx, arg)
	return h, err
}

// Address resolves a step argument.
func (a *App) Address(ctx context.Context, arg string) (cas.Hash, error) {
	_, h, err := a.Place(ctx, arg)
	return h, err
}

// Place is like [App.Address] and also returns the thread in the argument, or "".
func (a *App) Place(ctx context.Context, arg string) (id string, h cas.Hash, err error) {
	r, err := a.names()
	if err != nil {
		return "", "", err
	}
	id, h, err = r.Step(ctx, arg)
	return id, h, err
}

// AddressIn is like [App.Address] for a command about one thread.
func (a *App) AddressIn(ctx context.Context, id, arg string) (cas.Hash, error) {
	r, err := a.names()
	if err != nil {
		return "", err
	}
	h, err := r.StepIn(ctx, id, arg)
	return h, err
}

// Explain adds similar names to an error about a name: a local file, or a node of the store.
func (a *App) Explain(ctx context.Context, e *protocol.Error) {
	for _, r := range e.Reasons {
		switch r.Name {
		case "names-path":
			if near := suggest.File(a.Env.Dir, r.Data["path"]); near != "" {
				r.Data["near"] = near
			}
		case "no-node":
			if s, err := a.Store(ctx); err == nil {
				e.Hints = append(e.Hints, ocascli.NearHashes(ctx, s, r.Data["node"])...)
			}
		}
	}
}

// WithEngine is like [App.Leaf] for a command that needs an engine.
func (a *App) WithEngine(c ucli.Command, run func(context.Context, *ucli.Context, *engine.Engine) error) *ucli.Command {
	return a.Leaf(c, func(ctx context.Context, c *ucli.Context) error {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		return run(ctx, c, e)
	})
}

// OnThread is like [App.Leaf] for a command about the thread in its first argument.
func (a *App) OnThread(
	c ucli.Command, run func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error,
) *ucli.Command {
	return a.Leaf(c, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		return run(ctx, c, e, id)
	})
}

// ThreadAndEngine returns the thread and engine that most thread commands need.
func (a *App) ThreadAndEngine(ctx context.Context, c *ucli.Context, show func(engine.Event)) (string, *engine.Engine, error) {
	id, err := a.Thread(ctx, c.Args().First())
	if err != nil {
		return "", nil, err
	}
	e, err := a.Engine(ctx, show)
	return id, e, err
}

// OpenThread opens the chain that ends at a head.
func (a *App) OpenThread(ctx context.Context, head protocol.Hash) (*thread.Thread, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	return thread.Open(ctx, s, head)
}
