package engine

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
)

// Workplace is the directory in which a role of a thread would work, see [place.Chooser].
// Errors are *protocol.Error.
func (e *Engine) Workplace(ctx context.Context, role, started, location string) (string, error) {
	return place.Chooser{Env: e.Env, Dirs: e.Dirs, Config: e.Config}.Workplace(ctx, role, started, location)
}

// workplace is the directory in which the attempt is to be made. If the thread's own directory
// is gone, the hint says how to work in another one.
func (a *attempt) workplace(ctx context.Context) (string, error) {
	dir, err := a.Workplace(ctx, a.task.role, a.pos.Dir(), a.task.cwd)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if _, gone := place.Real(a.pos.Dir()); gone != nil {
		if w := a.locked.facts.Workspace; w != nil && w.Mode == workspace.InWorktree {
			return "", fault.Hinted(fault.Of(err), "uwf thread fork "+string(a.locked.head)+" has another worktree with the same files")
		}
		return "", fault.Hinted(fault.Of(err), a.again()+" --cwd DIR lets the thread work elsewhere, now and later")
	}
	return dir, err
}
