package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// StartThread makes a thread of a stored workflow. Its directory is absolute and exists; the
// thread keeps the resolved path, so that a link put there later cannot redirect it. Inputs
// that are not given have their defaults. The start node is durable before a head names it.
// Errors are *protocol.Error.
func (e *Engine) StartThread(ctx context.Context, s protocol.Start) (thread string, err error) {
	return e.Start(ctx, s, StartOptions{})
}

// StartOptions are options of [Engine.Start]. The zero value works.
type StartOptions struct {
	Limits    protocol.Limits   // of the run's cost; they take precedence over the workflow's
	Workspace workspace.Options // how its files are kept
}

// Start is [Engine.StartThread] with options.
func (e *Engine) Start(ctx context.Context, s protocol.Start, o StartOptions) (thread string, err error) {
	if !filepath.IsAbs(s.Cwd) {
		return "", fault.New(protocol.CodeUsage, "the directory of a thread must be an absolute path, got %q", s.Cwd)
	}
	if s.Cwd, err = e.chosen(ctx, s.Cwd); err != nil {
		return "", fault.Of(fmt.Errorf("start a thread: %w", err))
	}
	release, err := e.holdStore(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer release()
	w, err := cas.Read[protocol.Workflow](ctx, e.Store, s.Workflow)
	if err != nil {
		return "", wrongNode(s.Workflow, "workflow", err)
	}
	if err := runnable(w); err != nil {
		return "", err
	}
	if err := e.origins().Stored(ctx, s.Workflow, w); err != nil {
		return "", fault.Of(err)
	}
	if s.Inputs, err = e.inputs(ctx, w, s.Inputs); err != nil {
		return "", fault.Of(err)
	}
	id, done, err := e.newThread(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer done()
	workspace, err := e.Files().New(ctx, o.Workspace, id, w.Name, s.Cwd)
	if err != nil {
		return "", fault.Of(err)
	}
	e.Files().TellNeighbour(ctx, workspace)
	b := e.batch()
	start, err := b.Add(ctx, s)
	if err != nil {
		return "", fault.Of(err)
	}
	if err := b.Commit(ctx); err != nil {
		return "", fault.Of(err)
	}
	return e.addThread(ctx, id, start, heads.Facts{Limits: budget.Said(o.Limits), Workspace: workspace})
}

// holdStore keeps the collector away until the new nodes are named by something that it reads:
// a head, or a run's record.
func (e *Engine) holdStore(ctx context.Context) (release func(), err error) {
	if err := e.mayWrite(); err != nil {
		return nil, err
	}
	done, err := cas.Hold(ctx, e.Store)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // it is also released when the process ends
}

// addThread makes a thread with a head. If that fails, it removes the worktree that was made
// for the thread.
func (e *Engine) addThread(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (string, error) {
	if err := e.Heads.Add(ctx, id, head, facts); err != nil {
		if w := facts.Workspace; w != nil && w.Mode == workspace.InWorktree {
			err = errors.Join(err, e.ThreadFiles().Drop(context.WithoutCancel(ctx), id, w))
		}
		return "", fault.Of(err)
	}
	if w := facts.Workspace; w != nil && w.Mode == workspace.InWorktree {
		if err := e.Files().Made(id); err != nil {
			return id, fault.Of(err)
		}
	}
	return id, nil
}

// newThread is the id of a thread that is about to be made, and is held until that is done.
func (e *Engine) newThread(ctx context.Context) (id string, done func(), err error) {
	if id, err = threadid.New(e.Env.Now(), e.Env.Rand); err != nil {
		return "", nil, err
	}
	held, err := e.Files().Making(ctx, id)
	return id, func() { _ = held.RemoveAndUnlock() }, err
}

// wrongNode is the error for a given hash that does not lead to what it should.
func wrongNode(h protocol.Hash, what string, err error) error {
	var kind *cas.TypeError
	switch {
	case errors.As(err, &kind):
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "node " + string(h) + " is not a " + what, Err: err}
	case errors.Is(err, cas.ErrNotFound):
		return &protocol.Error{Code: protocol.CodeNotFound, Message: "there is no node " + string(h), Err: err}
	}
	return fault.Of(err)
}
