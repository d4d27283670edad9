package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
)

// A thread from elsewhere is about files that are where its last step was made. Neither
// a remote nor an import puts them where a person lets it work. What an agent would find
// among others is not what the thread is about, so nobody is asked to work there.

// lastFiles is a thread whose files were kept with its last step; nil: they were not.
func (e *Engine) lastFiles(ctx context.Context, head protocol.Hash) *thread.Thread {
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil || t.Last == nil || t.Last.Files == nil || t.Last.Files.Tree == "" {
		return nil // of a chain that is damaged the step says so
	}
	return t
}

// hasThem refuses a directory whose files are not as they were after the last step of a
// thread.
func (e *Engine) hasThem(ctx context.Context, id, dir string, t *thread.Thread) error {
	want, why := t.Last.Files.Tree, ""
	k, err := e.Files().OpenFiles(ctx, id, dir, &heads.Workspace{Mode: workspace.InPlace, Root: dir})
	var coded *protocol.Error
	switch {
	case errors.As(err, &coded), err != nil && ctx.Err() != nil:
		return err
	case errors.Is(err, files.ErrNone):
		why = ": it is in no git work tree"
	case err != nil:
		why = ": " + place.Shown(err.Error())
	default:
		defer k.Release()
		if k.Spec.Tree == want {
			return nil
		}
	}
	kept, err := e.Files().FilesOf(ctx, t)
	if k != nil && err == nil && k.Spec.Tree == kept.After { // something was taken out of them
		return nil
	}
	refused := fault.New(protocol.CodeFailed, "thread %s works with files, and %s does not have them as they were after its last step (%s)%s. Nothing was started",
		id, place.Shown(dir), want, why)
	clone := plaintext.Word(dir)
	fork := fmt.Sprintf("uwf thread fork %s@%d --cwd ", id, t.Len())
	hints := []string{"--cwd DIR of a clone that has them"}
	if err != nil {
		hints = append(hints, "where they are: uwf thread export "+id+" --files -o thread.uwfb; here: uwf thread import thread.uwfb")
	}
	if k == nil {
		clone = "CLONE"
	}
	return fault.Hinted(refused, append(hints,
		fork+clone+" --files worktree makes another thread, in a worktree that has them",
		fork+plaintext.Word(dir)+" --files keep makes one that works with the files as they are")...)
}
