package remotes

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Remotes do not carry the files of threads. What an agent would find in a directory that
// has others is not what its thread is about, so nobody is paid for it.

// filesAreHere refuses a thread whose steps have files of which this machine has another
// state, or none. cwd is where it is to work from now on, "" if that is known.
func (l *Link) filesAreHere(ctx context.Context, id, cwd string) error {
	at, _, err := l.standing(ctx, id)
	if err != nil {
		return err
	}
	t, err := thread.Open(ctx, l.Store, at.Head)
	if err != nil || t.Last == nil || t.Last.Files == nil || t.Last.Files.Tree == "" {
		return nil //nolint:nilerr // the step will say what is wrong with the thread
	}
	tree, keeper := t.Last.Files.Tree, l.Engine.Files()
	if kept, err := keeper.WhereKept(ctx, t.Last.Root, tree); err == nil && kept != "" {
		return nil
	}
	facts, err := l.Heads.Facts(ctx, id)
	if err != nil {
		return err
	}
	if cwd == "" && facts.Workspace != nil {
		cwd = facts.Workspace.Root
	}
	if cwd != "" {
		if w, err := keeper.InPlace(ctx, cwd); err == nil {
			if k, err := keeper.OpenFiles(ctx, id, cwd, w); err == nil {
				same := k.Spec.Tree == tree
				k.Release()
				if same {
					return nil
				}
			}
		}
	}
	return &protocol.Error{
		Code: protocol.CodeFailed,
		Message: fmt.Sprintf("thread %s works with files, and this machine does not have them as they were after its last step (%s): remote %s does not carry files. Nobody was paid",
			id, tree, l.Name),
		Hints: []string{
			"step it in a clone that has those files: --cwd DIR",
			"or where they are: uwf thread export " + id + " --files -o thread.uwfb; here: uwf thread import thread.uwfb",
		},
	}
}
