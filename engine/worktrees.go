package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/threadid"
)

// What becomes of the worktrees of threads. A thread that ends takes its own along if
// nothing was made in it; others stay until somebody removes them. With the thread the
// files of its steps are still there, so that one which has gone on can be made again.

// uncommitted is what is unsaved in most worktrees.
const uncommitted = "files that are not committed"

// appliedRef says what of a thread's result the user has on a branch.
func appliedRef(id string) string { return "refs/uwf-applied/" + id }

// applyRef keeps the work tree of the user's as it was before the result came.
func applyRef(id string) string { return "refs/uwf-apply/" + id }

// resultRef keeps the commit that an apply is about to bring.
func resultRef(id string) string { return "refs/uwf-result/" + id }

// Unsaved says what a thread has made in its worktree that is nowhere but there and in
// its snapshots; "": nothing, or it has no worktree. Errors are *protocol.Error.
func (e *Engine) Unsaved(ctx context.Context, id string, w *heads.Workspace) (string, error) {
	if w == nil || w.Mode != workspace.InWorktree {
		return "", nil
	}
	if _, err := os.Lstat(w.Root); errors.Is(err, fs.ErrNotExist) {
		return e.unapplied(ctx, id, w)
	}
	repo, err := files.Find(ctx, e.Env, w.Root)
	if err != nil {
		return "", fault.Of(err)
	}
	if w.Branch == "" && repo.Head != w.Base {
		if kept, err := repo.OnBranch(ctx, repo.Head); err != nil || !kept {
			return "commits that are on no branch", codedOrNil(err)
		}
	}
	k, err := e.Files().OpenFiles(ctx, id, w.Root, w)
	if err != nil {
		return "", fault.Of(err)
	}
	defer k.Release()
	base, err := repo.TreeOf(ctx, k.Spec, repo.Head)
	if err != nil {
		return "", fault.Of(err)
	}
	if k.Spec.Tree == base {
		return "", nil
	}
	return uncommitted, nil
}

// unapplied is [Engine.Unsaved] for a worktree that is gone.
func (e *Engine) unapplied(ctx context.Context, id string, w *heads.Workspace) (string, error) {
	head, _, err := e.Lookup(ctx, id)
	if err != nil {
		return "", fault.Of(err)
	}
	last, err := e.Files().StepFiles(ctx, head)
	if err != nil {
		return "", nil // there is nothing that could be lost
	}
	if facts, err := e.Facts(ctx, id); err != nil || facts.Parent != nil {
		return "", codedOrNil(err) // what a child has made is its parent's
	}
	repo, _, err := e.Files().TreeOf(ctx, w, id)
	if err != nil {
		return "", nil // its repository is gone, and the snapshots with it
	}
	spec, err := e.Files().SpecOf(repo, id)
	if err != nil {
		return "", fault.Of(err)
	}
	for _, name := range []string{w.Base, "refs/heads/" + w.Branch} {
		if commit, ok := repo.Commit(ctx, name); ok {
			if tree, err := repo.TreeOf(ctx, spec, commit); err == nil && tree == last.After {
				return "", nil
			}
		}
	}
	if tree, err := repo.TreeOf(ctx, spec, appliedRef(id)); err == nil && tree == last.After {
		return "", nil
	}
	return "files that are committed nowhere", nil
}

// DropFiles removes a thread's worktree and what keeps its snapshots. What is unsaved
// goes, too: see [Engine.Unsaved]. Errors are *protocol.Error.
func (e *Engine) DropFiles(ctx context.Context, id string, w *heads.Workspace) error {
	if w == nil || w.Mode == workspace.AsItIs {
		return nil
	}
	repo, _, err := e.Files().TreeOf(ctx, w, id)
	if err != nil { // the repository is gone, and what it kept with it
		return nil
	}
	spec, err := e.Files().SpecOf(repo, id)
	if err != nil {
		return fault.Of(err)
	}
	if err := files.Forget(ctx, e.Env, spec, appliedRef(id), applyRef(id), resultRef(id)); err != nil {
		return fault.Of(err)
	}
	if w.Mode != workspace.InWorktree {
		return nil
	}
	if err := repo.LetGo(appliedBy(id)); err != nil {
		return fault.Of(err)
	}
	return codedOrNil(repo.RemoveWorktree(ctx, e.Dirs.Worktree(id), w.Branch, w.Base))
}

// codedOrNil is coded for an error that may be none.
func codedOrNil(err error) error {
	if err == nil {
		return nil
	}
	return fault.Of(err)
}

// leaveTree removes the worktree of a thread that has ended, if nothing was made in it:
// no commit, no file, not even one that git ignores. last is the step that it has ended
// with: if that keeps the files of a child, they are nobody's to look at; nil: it was killed.
func (e *Engine) leaveTree(ctx context.Context, id string, w *heads.Workspace, start protocol.Start, last *thread.Step) {
	if w == nil || w.Mode != workspace.InWorktree {
		return
	}
	repo, err := files.Find(ctx, e.Env, w.Root)
	if err != nil || repo.Head != w.Base {
		return
	}
	if start.Child != nil && last != nil && last.Files != nil && len(last.Files.Left) == 0 {
		if err := repo.RemoveWorktree(ctx, e.Dirs.Worktree(id), "", ""); err != nil {
			e.warn("the worktree " + place.Shown(w.Root) + " of a child that has ended could not be removed: " + err.Error())
		}
		return
	}
	if untouched, err := repo.Untouched(ctx, true); err != nil || !untouched {
		return
	}
	if repo.RemoveWorktree(ctx, e.Dirs.Worktree(id), w.Branch, w.Base) == nil {
		e.warn("nothing was made in " + place.Shown(w.Root) + ": the worktree is removed")
	}
}

// comeBack makes the worktree of an ended thread again that is to go on, with the files
// of its last step, if it was removed, and that of a child which is to take its first step,
// with the files that it begins with. That of another active thread is missed.
func (e *Engine) comeBack(ctx context.Context, h *lockedThread, w *heads.Workspace) error {
	path := e.Dirs.Worktree(h.id)
	if w.Mode != workspace.InWorktree || h.ended == nil && h.facts.Parent == nil {
		return nil
	}
	t, err := thread.Open(ctx, e.Nodes(), h.head)
	if err != nil || h.ended == nil && t.Last != nil && (h.facts.Imported == nil || !e.RunDir(h.id).Read().Missing) {
		return err
	}
	if err := files.Mend(ctx, w.Repo, filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil && h.ended == nil && e.RunDir(h.id).Read().Missing {
		cut, err := files.Find(ctx, e.Env, path) // nobody has worked in it: who made it was killed
		if err == nil {
			err = cut.RemoveWorktree(ctx, path, "", "")
		}
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return e.treeAgain(ctx, h, w, t)
}

// treeAgain makes a thread's worktree again, with the files of its last step, or for the
// first time, with those that it begins with.
func (e *Engine) treeAgain(ctx context.Context, h *lockedThread, w *heads.Workspace, t *thread.Thread) error {
	repo, dir, err := e.Files().TreeOf(ctx, w, h.id)
	if err != nil {
		return nil // where it works is gone: that is said as for every thread
	}
	n := workspace.NewTree{Id: h.id, Repo: repo, Dir: dir, Base: w.Base, Branch: w.Branch, Foreign: h.facts.Imported != nil}
	if last, err := e.Files().FilesOf(ctx, t); err == nil {
		n.Tree = last.After
	} else if t.Last == nil && t.Start.Workspace != nil {
		n.Tree = t.Start.Workspace.Tree
	}
	if _, err = e.Files().AddWorktree(ctx, n); err != nil {
		return err
	}
	return e.Files().Made(h.id)
}

// Worktrees lists the worktrees of threads, and those below the home that no thread has.
// Errors are *protocol.Error.
func (e *Engine) Worktrees(ctx context.Context) ([]protocol.Worktree, error) {
	facts, err := e.Heads.AllFacts(ctx)
	if err != nil && facts == nil {
		return nil, fault.Of(err)
	}
	list := []protocol.Worktree{}
	for id, f := range facts {
		if w := f.Workspace; w != nil && w.Mode == workspace.InWorktree {
			if tree := e.worktree(ctx, id, w); !tree.Gone || !hasEndedAs(tree.Status) && f.Parent == nil { // gone with its end
				list = append(list, tree)
			}
		}
	}
	dirs, err := os.ReadDir(filepath.Dir(e.Dirs.Worktree("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Of(err)
	}
	for _, d := range dirs {
		if _, err := threadid.Parse(d.Name()); err == nil && facts[d.Name()].Workspace == nil {
			list = append(list, e.worktree(ctx, d.Name(), nil))
		}
	}
	slices.SortFunc(list, func(a, b protocol.Worktree) int { return strings.Compare(a.Path, b.Path) })
	return list, ctx.Err()
}

func hasEndedAs(s protocol.Status) bool {
	return s == protocol.StatusCompleted || s == protocol.StatusCancelled
}

// worktree says what there is to know of one; w is nil if no thread has it.
func (e *Engine) worktree(ctx context.Context, id string, w *heads.Workspace) protocol.Worktree {
	out := protocol.Worktree{Path: e.Dirs.Worktree(id)}
	if w != nil {
		out.Thread, out.Branch, out.Base, out.Repo = id, w.Branch, w.Base, w.Repo
		switch _, ended, err := e.Lookup(ctx, id); {
		case err != nil:
			out.Status = ""
		case ended != nil:
			out.Status = ended.Status
		default:
			out.Status = protocol.StatusIdle
			if now, err := e.Show(ctx, id); err == nil {
				out.Status = now.Status
			}
		}
	}
	if at, err := threadid.Time(id); err == nil {
		out.CreatedAt = at.UnixMilli()
	}
	if _, err := os.Lstat(out.Path); err != nil {
		out.Gone = true
		return out
	}
	_ = filepath.WalkDir(out.Path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				out.Bytes += info.Size()
			}
		}
		return ctx.Err()
	})
	return out
}

// CleanWorktrees removes the worktrees of threads that have ended, and those that no
// thread has, unless something in them is nowhere else. What a thread's steps keep is
// not lost with its worktree. It returns those that it has looked at: what is removed is
// gone, and the others say why they stay. Errors are *protocol.Error.
func (e *Engine) CleanWorktrees(ctx context.Context) ([]protocol.Worktree, error) {
	done := []protocol.Worktree{}
	swept, err := e.Files().Sweep(ctx)
	for _, path := range swept {
		done = append(done, protocol.Worktree{Path: path, Gone: true})
	}
	if err != nil {
		return done, err
	}
	list, err := e.Worktrees(ctx)
	if err != nil {
		return done, err
	}
	for _, w := range list {
		if w.Gone || w.Thread != "" && !hasEndedAs(w.Status) {
			continue
		}
		w.Stays, err = e.clean(ctx, w)
		if err != nil {
			w.Stays = fault.Of(err).Message
		}
		w.Gone = w.Stays == ""
		done = append(done, w)
	}
	return done, codedOrNil(ctx.Err())
}

// clean removes a worktree, or says what is in the way.
func (e *Engine) clean(ctx context.Context, w protocol.Worktree) (stays string, err error) {
	repo, err := files.Find(ctx, e.Env, w.Path)
	if errors.Is(err, files.ErrNone) && w.Thread == "" {
		return "", os.Remove(w.Path) // an empty directory, or it stays
	}
	if err != nil {
		return "", err
	}
	id := filepath.Base(w.Path)
	if w.Thread == "" {
		lock, err := e.Files().Making(ctx, id)
		if err != nil {
			return "", err
		}
		defer func() { _ = lock.RemoveAndUnlock() }()
		untouched, err := repo.Untouched(ctx, false)
		kept := false
		if err == nil {
			kept, err = repo.OnBranch(ctx, repo.Head)
		}
		if err != nil || !untouched || !kept {
			return "it has files or commits that are on no branch", err
		}
		return "", repo.RemoveWorktree(ctx, w.Path, "", "")
	}
	h, err := e.lock(ctx, id)
	if err != nil {
		return "", err
	}
	defer h.release()
	facts, err := e.Heads.Facts(ctx, id)
	if err != nil || facts.Workspace == nil || h.ended == nil {
		return "the thread goes on", err
	}
	if stays, err = e.Unsaved(ctx, id, facts.Workspace); err != nil {
		return "", err
	}
	kept := false
	if stays == uncommitted {
		if kept, err = e.keptWithStep(ctx, h, facts.Workspace); err != nil {
			return "", err
		}
	}
	if stays != "" && !kept {
		return "it has " + stays, nil
	}
	return "", repo.RemoveWorktree(ctx, w.Path, facts.Workspace.Branch, facts.Workspace.Base)
}

// keptWithStep reports whether the files of a thread's worktree are all those of its
// last step.
func (e *Engine) keptWithStep(ctx context.Context, h *lockedThread, w *heads.Workspace) (bool, error) {
	last, err := e.Files().StepFiles(ctx, h.head)
	var none *workspace.NoFilesError
	if errors.As(err, &none) || len(last.Left) > 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k, err := e.Files().OpenFiles(ctx, h.id, w.Root, w)
	if err != nil {
		return false, err
	}
	defer k.Release()
	return k.Spec.Tree == last.After, nil
}

// Prune forgets threads with their worktrees and the states of their files. One whose
// worktree has work that is nowhere else stays, unless it is forced.
func (e *Engine) Prune(ctx context.Context, o prune.Options, force bool) (prune.Report, error) {
	facts, err := e.Heads.AllFacts(ctx)
	if err != nil && facts == nil {
		return prune.Report{}, err
	}
	if !force {
		o.Spare = func(ctx context.Context, thread string) (string, error) {
			unsaved, err := e.Unsaved(ctx, thread, facts[thread].Workspace)
			if unsaved != "" {
				unsaved = "its worktree has " + unsaved
			}
			return unsaved, err
		}
	}
	report, err := prune.Run(ctx, o)
	if o.DryRun {
		return report, err
	}
	for _, gone := range report.Pruned {
		err = errors.Join(err, e.DropFiles(ctx, gone.Thread, facts[gone.Thread].Workspace))
	}
	return report, err
}
