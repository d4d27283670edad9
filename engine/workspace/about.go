package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
)

// aboutFiles is a thread from elsewhere, and the files that it is about.
type aboutFiles struct {
	*thread.Thread
	tree  protocol.Tree // after its newest step with files, or those that it began with; "": not known
	first protocol.Tree // that it began with, as far as that is known; "": not known
	kept  bool          // with its last step
	// above is the thread in whose files it works; "": it has files of its own.
	above string
}

// filesFor finds out which files a thread is about; nil: about none.
func (e Keeper) filesFor(ctx context.Context, of Thread) (*aboutFiles, error) {
	t, err := thread.Open(ctx, e.Read, of.Head)
	if err != nil {
		return nil, nil //nolint:nilerr // of a chain that is damaged the step says so
	}
	r, w := of.Facts.Repository, t.Start.Workspace
	f := &aboutFiles{Thread: t}
	switch {
	case w != nil && w.Tree != "":
		f.first = w.Tree
	case r != nil:
		f.first = r.Tree
	case t.Last != nil && t.Last.Files != nil:
	case of.Facts.Parent == nil:
		return nil, nil
	default:
		above, err := e.Heads.Facts(ctx, of.Facts.Parent.Thread)
		if err != nil || above.Repository == nil {
			return nil, err
		}
		f.above = of.Facts.Parent.Thread
		return f, nil
	}
	f.kept = t.Last != nil && t.Last.Files != nil && t.Last.Files.Tree != ""
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Files != nil && s.Files.Tree != "" {
			f.tree = s.Files.Tree
			break
		}
	}
	f.tree = cmp.Or(f.tree, f.first)
	return f, nil
}

// kept returns the state that stands in for a state of files on this machine, usually itself.
// The error is a [*NoFilesError].
func (e Keeper) kept(ctx context.Context, tree protocol.Tree) (protocol.Tree, error) {
	store, err := "", error(nil)
	if tree != "" {
		store, err = e.WhereKept(ctx, "", tree)
	}
	if err == nil && store == "" {
		err = &NoFilesError{Gone: true}
	}
	return files.Instead(ctx, e.Env, store, tree), err
}

// hasThem refuses a directory whose files are not those that a thread needs; the code is then
// [protocol.CodeNotFound].
func (e Keeper) hasThem(ctx context.Context, id, dir string, t *aboutFiles) *protocol.Error {
	why := ""
	k, err := e.OpenFiles(ctx, id, dir, &heads.Workspace{Mode: InPlace, Root: dir})
	var coded *protocol.Error
	switch {
	case errors.As(err, &coded), err != nil && ctx.Err() != nil:
		return fault.Of(err)
	case errors.Is(err, files.ErrNone):
		why = ": it is in no git work tree"
	case err != nil:
		why = ": " + place.Shown(err.Error())
	default:
		defer k.Release()
		if k.Spec.Tree == t.tree {
			return nil
		}
	}
	kept, err := e.kept(ctx, t.tree)
	if k != nil && err == nil && k.Spec.Tree == kept { // something was taken out of them
		return nil
	}
	refused := fault.New(protocol.CodeNotFound, "thread %s works with files, and %s does not have them as they were after its last step (%s)%s. Nothing was started",
		id, place.Shown(dir), cmp.Or(t.tree, "unknown"), why)
	clone := plaintext.Word(dir)
	fork := fmt.Sprintf("uwf thread fork %s@%d --cwd ", id, t.Len())
	hints := []string{"--cwd DIR of a clone that has them"}
	if k == nil {
		clone = "CLONE"
	}
	if err == nil {
		hints = append(hints, "--cwd DIR of an empty directory makes a repository there that has them, without its history")
	} else {
		hints = append(hints, "where they are: uwf push "+id+", or uwf thread export "+id+" --files -o thread.uwfb and here: uwf thread import thread.uwfb")
	}
	return fault.Hinted(refused, append(hints,
		fork+clone+" --files worktree makes another thread, in a worktree that has them",
		fork+plaintext.Word(dir)+" --files keep makes one that works with the files as they are")...)
}

// nowhere is the error for a place without the files that a thread needs, which nobody can
// bring there.
func (t *aboutFiles) nowhere(id, dir string) *protocol.Error {
	if t.above == "" {
		return fault.Hinted(fault.New(protocol.CodeNotFound, "thread %s works with files, and nobody knows which it began with; %s is in no git work tree. Nothing was started", id, place.Shown(dir)),
			"uwf push "+id+" where it was started takes them along", "--cwd DIR of a clone that has them")
	}
	return fault.Hinted(fault.New(protocol.CodeInvalid, "thread %s works in the files of thread %s, whose part it plays, and %s does not have them: nothing would come back of what was made there. Nothing was started",
		id, t.above, place.Shown(dir)),
		"workspace: worktree, in the role that it is a part of, gives each child files of its own, wherever it is made",
		"--cwd DIR of a clone that has them")
}

// placeFor makes a place that has the files of a thread from elsewhere: in an empty directory
// a repository, else a worktree. refused is why the directory itself will not do.
func (e Keeper) placeFor(ctx context.Context, t Thread, dir string, about *aboutFiles, refused error) (*heads.Workspace, error) {
	if e.isForNew(ctx, dir) {
		return e.repositoryIn(ctx, t, dir, about, refused)
	}
	return e.treeFor(ctx, t, dir, about, refused)
}

// isForNew reports whether a directory is one in which a repository can be made: it is empty,
// or has only what a process left that was killed while it made one, and is in no work tree.
func (e Keeper) isForNew(ctx context.Context, dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 1 {
		return false
	}
	if len(entries) == 1 {
		left, err := os.Lstat(unfinished(dir))
		return err == nil && left.Mode().IsRegular() && entries[0].Name() == ".git"
	}
	_, err = files.Find(ctx, e.Env, dir)
	return errors.Is(err, files.ErrNone)
}

// repositoryIn makes a repository in an empty directory with the files of a thread from
// elsewhere. refused is what is said where they are not on this machine.
func (e Keeper) repositoryIn(ctx context.Context, t Thread, dir string, about *aboutFiles, refused error) (*heads.Workspace, error) {
	tree, err := e.kept(ctx, about.tree)
	if err != nil {
		return nil, refused
	}
	first, err := e.kept(ctx, about.first)
	if err != nil {
		first = tree
	}
	below := ""
	if r := t.Facts.Repository; r != nil {
		below = filepath.FromSlash(r.Dir)
	}
	w, err := e.NewRepository(ctx, t.ID, dir, below, first, tree)
	if err == nil {
		e.Warn(fmt.Sprintf("thread %s works in %s, a repository that has its files and no history", t.ID, place.Shown(w.Root)))
	}
	return w, err
}
