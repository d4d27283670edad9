package worktree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
)

// ApplyOptions are the options of [Keeper.Apply].
type ApplyOptions struct {
	Dir     string // a directory in the target work tree
	Branch  string // target branch, without touching a work tree; "" means the branch checked out in Dir
	Message string // commit message; "" means the thread's title
	Dirty   bool   // allow uncommitted changes if the result doesn't touch them
}

// landing is the record that an apply writes before it changes a work tree. If it is still there later, the
// apply was interrupted.
type landing struct {
	Root    string `json:"root"`
	From    string `json:"from"` // commit of the checked-out branch
	To      string `json:"to"`
	Writing bool   `json:"writing,omitempty"` // the files are being written
}

// maxLanding is the maximum size of the record file in bytes.
const maxLanding = 64 << 10

// application is an apply in progress.
type application struct {
	Keeper
	Locked
	w    *heads.Workspace
	o    ApplyOptions
	from snapshot.Repo // the thread's worktree; Root is "" if it is gone
	head string        // commit of the worktree
	spec snapshot.Spec // snapshot settings of the target
	to   snapshot.Repo // target work tree
	out  protocol.ThreadApplied
	// again means that an interrupted apply had started with the same result.
	again bool
}

// Apply brings the files that a thread has made in its worktree to a branch of the user's repository, as a
// commit, or as a merge if the branch has moved since. It is atomic. Errors are *protocol.Error.
func (e Keeper) Apply(ctx context.Context, id string, o ApplyOptions) (protocol.ThreadApplied, error) {
	t, err := e.Lock(ctx, id)
	if err != nil {
		return protocol.ThreadApplied{}, fault.Of(err)
	}
	defer t.Release()
	a := &application{Keeper: e, Locked: t, w: t.Facts.Workspace, o: o, out: protocol.ThreadApplied{Thread: id}}
	if home, err := a.fromElsewhere(ctx); home || err != nil {
		return a.out, err
	}
	if a.w != nil && a.w.Mode == InPlace && o.Branch == "" {
		a.out.Root, a.out.Already = a.w.Root, true
		return a.out, nil
	}
	if err := a.run(ctx); err != nil {
		return a.out, a.explain(err)
	}
	return a.out, nil
}

// fromElsewhere prepares a thread that continued on another machine: its local work tree gets the files of
// its last step. If that tree is the user's own (home), nothing else remains to be done. A thread without a
// local work tree is applied as if its worktree were gone.
func (a *application) fromElsewhere(ctx context.Context) (home bool, err error) {
	last := a.WithFiles(ctx, a.Head)
	if last == nil || !a.Facts.Foreign() {
		return false, nil
	}
	if a.w == nil || a.w.Mode == ModeNone {
		repo, err := snapshot.Find(ctx, a.Env, a.o.Dir)
		if err != nil || a.Facts.Repository == nil {
			return false, nil //nolint:nilerr // Apply reports the error
		}
		if base, ok := repo.Commit(ctx, a.Facts.Repository.Base); ok {
			a.w = &heads.Workspace{Mode: InWorktree, Root: a.Dirs.Worktree(a.ID), Repo: repo.Common, Base: base}
		}
		return false, nil
	}
	if _, err := os.Lstat(a.w.Root); err != nil {
		return false, nil //nolint:nilerr // Apply reports the error
	}
	changed, err := a.catchUp(ctx, a.ID, a.w, last)
	if home = a.w.Mode == InPlace && changed != nil; home {
		a.out.Files = changed
	}
	return home, err
}

func (a *application) run(ctx context.Context) error {
	if err := a.find(ctx); err != nil {
		return err
	}
	lock, err := a.LockTree(ctx, a.ID, a.to.Root)
	if err != nil {
		return err
	}
	defer func() { _ = lock.RemoveAndUnlock() }()
	now, err := a.begin(ctx)
	if err != nil {
		return err
	}
	result, err := a.result(ctx)
	if err != nil {
		return err
	}
	if a.o.Branch != "" {
		return a.toBranch(ctx, result)
	}
	return a.toWorkTree(ctx, now, result)
}

// find finds both work trees.
func (a *application) find(ctx context.Context) error {
	switch {
	case a.w == nil || a.w.Mode == ModeNone:
		return fault.New(protocol.CodeFailed, "thread %s has no worktree, so its changes can't be told apart from "+
			"yours",
			a.ID).Because("no-worktree")
	case a.w.Mode == InPlace:
		return fault.New(protocol.CodeFailed, "thread %s works in %s itself; its changes are already there", a.ID,
			cwd.Shown(a.w.Root)).Because("already-in-place", "root", a.w.Root, "branch", a.o.Branch)
	}
	var err error
	a.to, err = snapshot.Find(ctx, a.Env, a.o.Dir)
	if refused := (*snapshot.RefusedError)(nil); errors.As(err, &refused) {
		return err
	}
	if err != nil || !gitdir.Same(a.to.Common, a.w.Repo) {
		none := fault.New(protocol.CodeFailed, "%s is not a work tree of %s, where thread %s was started", cwd.Shown(a.o.Dir),
			cwd.Shown(a.w.Repo), a.ID)
		if _, gone := os.Lstat(a.w.Repo); gone != nil {
			return none.Because("repository-gone", "head", string(a.Head), "dir", a.o.Dir)
		}
		return none.Because("not-its-repository")
	}
	a.from, err = snapshot.Find(ctx, a.Env, a.w.Root)
	switch {
	case errors.Is(err, snapshot.ErrNone), errors.Is(err, fs.ErrNotExist):
		a.from = snapshot.Repo{}
	case err != nil:
		return err
	}
	if a.from.Root == a.to.Root {
		return fault.New(protocol.CodeFailed, "%s is the worktree of thread %s", cwd.Shown(a.to.Root),
			a.ID).Because("applied-to-itself")
	}
	if a.spec, err = a.SpecOf(a.to, a.ID); err != nil {
		return err
	}
	if a.to.Head == "" {
		return fault.New(protocol.CodeFailed, "%s has no commits", cwd.Shown(a.to.Root)).Because("no-commit")
	}
	c, err := a.Config(ctx)
	if err != nil {
		return err
	}
	a.spec.DenyRead = a.deniedPaths(c, a.to.Root, a.o.Dir)
	a.spec.Index = a.file(".index")
	return nil
}

// file returns the path of an apply's file next to the snapshots, where the thread's agents cannot write.
func (a *application) file(suffix string) string {
	return filepath.Join(a.spec.Git, "apply", a.ID+suffix)
}

// begin finishes an interrupted apply in the target, and takes a snapshot of it.
func (a *application) begin(ctx context.Context) (now protocol.Tree, err error) {
	if err := os.RemoveAll(a.spec.Index); err != nil {
		return "", err
	}
	taken, err := snapshot.Begin(ctx, a.Env, a.to, &a.spec)
	if err != nil {
		return "", err
	}
	return a.finish(ctx, taken.Tree)
}

// finish completes an interrupted apply: it writes the other files and moves the branch, unless the branch or the
// written files were changed since. It returns the current files.
func (a *application) finish(ctx context.Context, now protocol.Tree) (protocol.Tree, error) {
	path := a.file(".json")
	text, err := safeopen.ReadFile(path, maxLanding, safeopen.NoFollow)
	if err != nil {
		return now, gone(err)
	}
	var cut landing
	if json.Unmarshal(text, &cut) != nil || cut.Root != a.to.Root || a.to.Head != cut.From &&
		a.to.Head != cut.To {
		return now, os.Remove(path) // the branch has moved since
	}
	if old := a.file(".restore"); !snapshot.IsGone(old) { // an older version was writing
		cut.Writing = true
		if err := errors.Join(a.note(cut), os.Remove(old)); err != nil {
			return now, err
		}
	}
	from, err := a.to.TreeOf(ctx, a.spec, cut.From)
	to, lost := a.to.TreeOf(ctx, a.spec, cut.To)
	if ctx.Err() != nil {
		return now, ctx.Err()
	} else if err != nil || lost != nil {
		return now, os.Remove(path) // it contains redacted files
	}
	if cut.Writing {
		if now, _, err = snapshot.Finish(ctx, a.Env, a.spec, from, to); err != nil {
			return now, err
		}
	}
	laid, err := a.to.Overlay(ctx, a.spec, now, snapshot.Edited{}, cut.From, cut.To)
	if err != nil {
		return now, err
	}
	if differ, err := a.to.ChangedPaths(ctx, a.spec, laid, now); err != nil {
		return now, err
	} else if len(differ) == 0 {
		err := a.publish(ctx, cut.To, func() error { return a.to.AdvanceHead(ctx, a.spec, cut.From, cut.To, appliedBy(a.ID), true) })
		if err != nil {
			return now, err
		}
		a.to.Head = cut.To
	}
	return now, os.Remove(path)
}

// note makes the record of the apply durable.
func (a *application) note(record landing) error {
	text, _ := json.Marshal(record) // texts always encode
	return durable.WriteFile(durable.OS(), a.file(".json"), append(text, '\n'), 0o600)
}

// result returns the commit with the thread's files.
func (a *application) result(ctx context.Context) (string, error) {
	tree, err := a.made(ctx)
	if err != nil {
		return "", err
	}
	tree, apart, err := a.to.WithSubmodulesOf(ctx, a.spec, tree, a.head, a.out.Left...)
	if err != nil {
		return "", err
	}
	if slices.Contains(apart, snapshot.Modules) {
		a.out.Left = append(a.out.Left, snapshot.Modules)
	}
	before, err := a.to.TreeOf(ctx, a.spec, a.head)
	if err != nil {
		return "", err
	}
	if tree == before {
		return a.head, nil
	}
	if made, ok := a.to.FindCommit(ctx, a.spec, resultRef(a.ID), tree, a.head); ok { // made by an interrupted apply
		a.again = true
		return made, nil
	}
	message := a.o.Message
	if message == "" {
		if message, err = a.title(ctx); err != nil {
			return "", err
		}
	}
	return a.to.MakeCommit(ctx, a.spec, tree, message+"\n", a.head)
}

// made returns the state of the thread's files: the current one in its worktree, or, if that is gone, the one
// after the last step.
func (a *application) made(ctx context.Context) (protocol.Tree, error) {
	if a.from.Root != "" {
		k, err := a.Open(ctx, a.ID, a.w.Root, a.w)
		if err != nil {
			return "", err
		}
		defer k.Release()
		if a.from, a.head = k.Repo, k.Repo.Head; a.head == "" {
			return "", fault.New(protocol.CodeFailed, "branch %s of the worktree of thread %s was deleted",
				plaintext.Word(a.w.Branch), a.ID).Because("branch-deleted", "head", string(a.Head), "dir", a.o.Dir)
		}
		only, err := k.look(ctx, a.w.Base, nil)
		if err != nil {
			return "", err
		}
		a.out.Left = slices.Concat(only.Left, only.Submodules, only.Repositories)
		return k.Spec.Tree, nil
	}
	a.head = a.w.Base
	if tip, ok := a.to.Commit(ctx, "refs/heads/"+a.w.Branch); ok && a.w.Branch != "" {
		a.head = tip
	}
	last, err := a.StepFiles(ctx, a.Head)
	if err == nil {
		a.out.Left = last.Left
		err = a.fetch(ctx, a.spec.Git, last.After)
	}
	return last.After, err
}

// title returns the commit message: the title, and a line that identifies the thread.
func (a *application) title(ctx context.Context) (string, error) {
	title := ""
	if a.Facts.Title != nil {
		title = *a.Facts.Title
	}
	if title == "" {
		t, err := thread.Open(ctx, a.Read, a.Head)
		if err != nil {
			return "", err
		}
		title, _, _ = strings.Cut(strings.TrimSpace(t.Task()), "\n")
	}
	return cmp.Or(strings.TrimSpace(title), "uwf") + "\n\nuwf thread " + a.ID, nil
}

// toBranch creates or updates a branch with the result.
func (a *application) toBranch(ctx context.Context, result string) error {
	branch := a.o.Branch
	if at, err := a.to.CheckedOut(ctx, branch); err != nil {
		return err
	} else if at != "" {
		return fault.New(protocol.CodeFailed, "branch %s is checked out in %s", cwd.Shown(branch),
			cwd.Shown(at)).Because("branch-checked-out")
	}
	old, exists := a.to.Commit(ctx, "refs/heads/"+branch)
	if exists {
		behind, err := a.to.Contains(ctx, a.spec, result, old)
		if err != nil {
			return err
		}
		if !behind {
			return fault.New(protocol.CodeFailed, "branch %s has commits that the result lacks",
				cwd.Shown(branch)).Because("branch-has-more")
		}
	}
	err := a.publish(ctx, result, func() error { return a.to.SetBranch(ctx, branch, result, old, appliedBy(a.ID), a.again) })
	if err != nil {
		return err
	}
	a.out.Branch, a.out.Commit, a.out.Already = branch, result, exists && old == result
	return a.follow(ctx, result)
}

// toWorkTree brings the result to the checked-out branch, its files and its index.
func (a *application) toWorkTree(ctx context.Context, now protocol.Tree, result string) error {
	branch, err := a.to.Branch(ctx)
	if err != nil {
		return err
	}
	if branch == "" {
		return fault.New(protocol.CodeFailed, "no branch is checked out in %s", cwd.Shown(a.to.Root)).Because("no-branch")
	}
	if what := a.to.Unfinished(); what != "" || !snapshot.IsGone(a.to.Index+".lock") {
		return fault.New(protocol.CodeFailed, "%s is in the middle of a git %s", cwd.Shown(a.to.Root),
			cmp.Or(what, "command (index.lock)")).Because("git-unfinished")
	}
	a.out.Branch = branch
	if a.out.Already, err = a.to.Contains(ctx, a.spec, a.to.Head, result); err != nil || a.out.Already {
		a.out.Commit = a.to.Head
		return err
	}
	to, err := a.together(ctx, result)
	if err != nil {
		return err
	}
	edited, err := a.to.Edited(ctx, a.spec, now)
	if err != nil {
		return err
	}
	if n := len(edited.Tracked); n > 0 && !a.o.Dirty {
		return fault.New(protocol.CodeFailed, "%s has uncommitted changes: %s",
			cwd.Shown(a.to.Root), Abbreviate(edited.Tracked)).Because("not-committed")
	}
	laid, err := a.to.Overlay(ctx, a.spec, now, edited, a.to.Head, to)
	if err != nil {
		return err
	}
	changes, err := snapshot.Diff(ctx, a.Env, a.spec.Git, now, laid)
	if err != nil {
		return err
	}
	a.out.Files = FileChanges(changes)
	if err := a.publish(ctx, to, func() error { return a.land(ctx, now, laid, to) }); err != nil {
		return err
	}
	a.out.Commit, a.out.Merged = to, to != result
	return a.follow(ctx, result)
}

// publish copies a commit into the user's repository and calls point, which must create a ref to it. The
// commit is protected from garbage collection until then. Our repository keeps it for another try if this one
// is interrupted.
func (a *application) publish(ctx context.Context, commit string, point func() error) (err error) {
	defer func() { err = errors.Join(err, a.to.Release(appliedBy(a.ID))) }()
	if err := a.to.SetRef(ctx, a.spec, resultRef(a.ID), commit); err != nil {
		return err
	}
	if err := a.to.Import(ctx, a.spec, commit, appliedBy(a.ID)); err != nil {
		return err
	}
	return point()
}

// appliedBy returns the reflog message for the user's repository.
func appliedBy(id string) string { return "uwf thread apply " + id }

// together returns the commit for the branch: the result if the branch has no new commits, else a merge.
func (a *application) together(ctx context.Context, result string) (string, error) {
	ahead, err := a.to.Contains(ctx, a.spec, result, a.to.Head)
	if err != nil || ahead {
		return result, err
	}
	tree, err := snapshot.Merge(ctx, a.Env, a.spec.Git, a.to.Head, result)
	if err != nil {
		return "", err
	}
	return a.to.MakeCommit(ctx, a.spec, tree, "Merge the result of uwf thread "+a.ID+"\n", a.to.Head, result)
}

// land writes the files and then moves the branch and the index.
func (a *application) land(ctx context.Context, now, laid protocol.Tree, to string) error {
	files, err := snapshot.Prepare(ctx, a.Env, a.spec, now, laid)
	if err != nil {
		return err
	}
	record := landing{Root: a.to.Root, From: a.to.Head, To: to, Writing: true}
	if err := a.note(record); err != nil {
		return err
	}
	if err := files.Write(ctx); err != nil {
		if is, lost := snapshot.Take(ctx, a.Env, a.spec); lost == nil && is.Tree == now {
			err = errors.Join(err, os.Remove(a.file(".json"))) // nothing was written
		}
		return err
	}
	record.Writing = false
	if err := a.note(record); err != nil {
		return err
	}
	if err := a.to.AdvanceHead(ctx, a.spec, a.to.Head, to, appliedBy(a.ID), a.again); err != nil {
		return fault.Of(fmt.Errorf("update branch %s of %s: %w", cwd.Shown(a.out.Branch), cwd.Shown(a.to.Root),
			err)).Because("branch-not-moved", "thread", a.ID)
	}
	return os.Remove(a.file(".json"))
}

// follow records that the user has the result, and marks it as committed in the thread's worktree.
func (a *application) follow(ctx context.Context, result string) error {
	if err := a.to.SetRef(ctx, a.spec, appliedRef(a.ID), result); err != nil {
		return err
	}
	if a.from.Root == "" || a.head == result {
		return nil
	}
	return a.from.AdvanceHead(ctx, a.spec, a.head, result, appliedBy(a.ID), true)
}

// explain adds a code and the facts for a hint to an error.
func (a *application) explain(err error) error {
	var conflict *snapshot.ConflictError
	var blocked *snapshot.InTheWayError
	var unsaved *snapshot.UnsavedError
	var protected *snapshot.ProtectedError
	switch {
	case errors.As(err, &protected):
		return fault.Of(err).Because("files-protected", "dir", protected.Dirs[0])
	case errors.As(err, &conflict):
		return (&protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: fmt.Sprintf("cannot merge the result of thread %s into branch %s: both changed %s", a.ID,
				cwd.Shown(a.out.Branch), Abbreviate(conflict.Paths))}).Because("merge-conflict", "thread", a.ID)
	case errors.Is(err, snapshot.ErrNoIdentity):
		return fault.Of(err).Because("no-git-identity")
	case errors.Is(err, snapshot.ErrTooOld):
		return fault.Of(err).Because("git-too-old", "thread", a.ID)
	case errors.As(err, &blocked):
		return (&protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: fmt.Sprintf("the result of thread %s would overwrite uncommitted changes in %s: %s", a.ID,
				cwd.Shown(a.to.Root), Abbreviate(blocked.Paths))}).Because("overwrites-uncommitted", "thread", a.ID)
	case errors.As(err, &unsaved):
		return fault.Of(err).Because("changed-meanwhile", "root", cwd.Shown(a.to.Root))
	case !errors.As(err, new(*protocol.Error)) && errors.As(err, new(*snapshot.GitError)):
		return (&protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: fmt.Sprintf("cannot apply the result of thread %s to %s: %s", a.ID, cwd.Shown(a.to.Root),
				cwd.Shown(err.Error()))}).Because("git-failed", "root", a.to.Root, "head", string(a.Head), "dir", a.o.Dir)
	}
	return fault.Of(err)
}
