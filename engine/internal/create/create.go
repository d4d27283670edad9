// Package create makes threads: new ones of a workflow, and forks of others. What is durable
// when is its promise: a head names a thread only once the thread's nodes and files are there.
package create

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/origin"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Maker makes threads. Build it as a literal.
type Maker struct {
	*status.Reader
	Files workspace.Keeper
	// Drop removes the worktree of a thread that could not be made.
	Drop func(ctx context.Context, id string, w *heads.Workspace) error
}

func (m Maker) origins() origin.Judge { return origin.Judge{Reader: m.Reader} }

// chosen is the directory that a person wants a thread to work in, without symbolic links.
func (m Maker) chosen(ctx context.Context, cwd string) (string, error) {
	dir, err := place.Real(cwd)
	if err != nil {
		return "", fault.Of(err)
	}
	return place.Chooser{Env: m.Env, Dirs: m.Dirs, Config: m.Config}.Workplace(ctx, "", dir, "")
}

// WorksIn is what is known of a thread once a person has said where it works.
func (m Maker) WorksIn(ctx context.Context, dir string, imported *heads.Imported) (heads.Facts, error) {
	root, err := m.chosen(ctx, dir)
	if err != nil {
		return heads.Facts{}, err
	}
	facts := heads.Facts{Workspace: &heads.Workspace{Mode: workspace.AsItIs, Root: root}}
	if imported != nil {
		confirmed := *imported
		confirmed.Confirmed = true
		facts.Imported = &confirmed
	}
	return facts, nil
}

// StartOptions are options of [Maker.Start]. The zero value works.
type StartOptions struct {
	Limits    protocol.Limits   // of the run's cost; they take precedence over the workflow's
	Workspace workspace.Options // how its files are kept
}

// Start makes a thread of a stored workflow. Its directory is absolute and exists; the
// thread keeps the resolved path, so that a link put there later cannot redirect it. Inputs
// that are not given have their defaults. The start node is durable before a head names it.
// Errors are *protocol.Error.
func (m Maker) Start(ctx context.Context, s protocol.Start, o StartOptions) (thread string, err error) {
	if !filepath.IsAbs(s.Cwd) {
		return "", fault.New(protocol.CodeUsage, "the directory of a thread must be an absolute path, got %q", s.Cwd)
	}
	if s.Cwd, err = m.chosen(ctx, s.Cwd); err != nil {
		return "", fault.Of(fmt.Errorf("start a thread: %w", err))
	}
	release, err := m.HoldStore(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer release()
	w, err := cas.Read[protocol.Workflow](ctx, m.Store, s.Workflow)
	if err != nil {
		return "", WrongNode(s.Workflow, "workflow", err)
	}
	if err := Runnable(w); err != nil {
		return "", err
	}
	if err := m.origins().Stored(ctx, s.Workflow, w); err != nil {
		return "", fault.Of(err)
	}
	if s.Inputs, err = m.Inputs(ctx, w, s.Inputs); err != nil {
		return "", fault.Of(err)
	}
	id, done, err := m.newThread(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer done()
	workspace, err := m.Files.New(ctx, o.Workspace, id, w.Name, s.Cwd)
	if err != nil {
		return "", fault.Of(err)
	}
	m.Files.TellNeighbour(ctx, workspace)
	b := m.Batch()
	start, err := b.Add(ctx, s)
	if err != nil {
		return "", fault.Of(err)
	}
	if err := b.Commit(ctx); err != nil {
		return "", fault.Of(err)
	}
	return m.addThread(ctx, id, start, heads.Facts{Limits: budget.Said(o.Limits), Workspace: workspace})
}

// addThread makes a thread with a head. If that fails, it removes the worktree that was made
// for the thread.
func (m Maker) addThread(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (string, error) {
	if err := m.Heads.Add(ctx, id, head, facts); err != nil {
		if w := facts.Workspace; w != nil && w.Mode == workspace.InWorktree {
			err = errors.Join(err, m.Drop(context.WithoutCancel(ctx), id, w))
		}
		return "", fault.Of(err)
	}
	if w := facts.Workspace; w != nil && w.Mode == workspace.InWorktree {
		if err := m.Files.Made(id); err != nil {
			return id, fault.Of(err)
		}
	}
	return id, nil
}

// newThread is the id of a thread that is about to be made, and is held until that is done.
func (m Maker) newThread(ctx context.Context) (id string, done func(), err error) {
	if id, err = threadid.New(m.Env.Now(), m.Env.Rand); err != nil {
		return "", nil, err
	}
	held, err := m.Files.Making(ctx, id)
	return id, func() { _ = held.RemoveAndUnlock() }, err
}

// WrongNode is the error for a given hash that does not lead to what it should.
func WrongNode(h protocol.Hash, what string, err error) error {
	var kind *cas.TypeError
	switch {
	case errors.As(err, &kind):
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "node " + string(h) + " is not a " + what, Err: err}
	case errors.Is(err, cas.ErrNotFound):
		return &protocol.Error{Code: protocol.CodeNotFound, Message: "there is no node " + string(h), Err: err}
	}
	return fault.Of(err)
}
