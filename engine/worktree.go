package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/durable"
)

// newTree says which worktree a thread gets.
type newTree struct {
	id      string
	repo    files.Repo
	dir     string // of the work tree in which the thread would work otherwise
	base    string // commit
	tree    protocol.Tree
	name    string // of the workflow, for the branch; "": no branch
	foreign bool   // its files come from elsewhere
	// branch is one that the worktree had before.
	branch string
}

// addWorktree makes the worktree of a thread: at a commit, with the files of a tree, or
// of that commit. The thread works at the same place below its root.
func (e *Engine) addWorktree(ctx context.Context, n newTree) (w *heads.Workspace, err error) {
	if n.base == "" {
		return nil, fault.Hinted(fault.New(protocol.CodeFailed, "%s has no commit yet, and a worktree begins with one", place.Shown(n.repo.Root)), "git commit --allow-empty -m start")
	}
	rel, err := filepath.Rel(n.repo.Root, n.dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s is not in %s", place.Shown(n.dir), place.Shown(n.repo.Root))
	}
	path := e.Dirs.Worktree(n.id)
	if err := durable.MkdirAll(e.FS, filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	branch := n.branch
	if n.name != "" {
		branch = branchOf(n.name, n.id)
	}
	if tip, ok := n.repo.Commit(ctx, "refs/heads/"+n.branch); ok && n.branch != "" {
		n.base = tip
	}
	if err := n.repo.AddWorktree(ctx, path, n.base, branch); err != nil {
		return nil, fmt.Errorf("make a worktree: %w", err)
	}
	defer func() {
		if err != nil {
			if n.branch != "" {
				branch = "" // it was there before
			}
			err = errors.Join(err, n.repo.RemoveWorktree(context.WithoutCancel(ctx), path, branch, n.base))
		}
	}()
	if path, err = place.Real(path); err != nil {
		return nil, err
	}
	repo, err := files.Find(ctx, e.Env, path)
	if err != nil {
		return nil, err
	}
	spec, err := e.specOf(repo, n.id)
	if err != nil {
		return nil, err
	}
	if n.tree != "" {
		if err := repo.Seed(ctx, spec.Git, true); err != nil {
			return nil, err
		}
		if err := e.bring(ctx, spec.Git, n.tree); err != nil {
			return nil, err
		}
	}
	if err := files.Fill(ctx, e.Env, repo, spec, n.tree, n.base); err != nil {
		return nil, fmt.Errorf("fill the worktree: %w", err)
	}
	root := filepath.Join(path, rel)
	if err := os.MkdirAll(root, 0o777); err != nil {
		return nil, err
	}
	if err := e.furnish(ctx, n.repo, repo, n.id, root, n.foreign); err != nil {
		return nil, err
	}
	return &heads.Workspace{Mode: InWorktree, Root: root, Repo: repo.Common, Base: n.base, Branch: branch}, nil
}

// branchOf is the branch of a thread's worktree: uwf/<workflow>-<end of the id>.
func branchOf(workflow, id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(workflow))
	const end = 6
	return "uwf/" + strings.Trim(name, "-") + "-" + strings.ToLower(id[len(id)-end:])
}

// startTree is the worktree of a new thread.
func (e *Engine) startTree(ctx context.Context, id, workflow, dir string, o WorkspaceOptions) (*heads.Workspace, error) {
	repo, err := files.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, noWorkTree(dir, err)
	}
	n := newTree{id: id, repo: repo, dir: dir, base: repo.Head, name: workflow}
	if o.Base != "" {
		var ok bool
		if n.base, ok = repo.Commit(ctx, o.Base); !ok {
			return nil, fault.Hinted(fault.New(protocol.CodeNotFound, "there is no commit %s in %s", place.Shown(o.Base), place.Shown(repo.Root)), "git log --oneline --all")
		}
	}
	if o.Dirty {
		k, err := e.openFiles(ctx, id, dir, &heads.Workspace{Mode: InPlace, Root: dir})
		if err != nil {
			return nil, fault.Of(err)
		}
		n.tree = k.spec.Tree
		k.release()
	}
	return e.addWorktree(ctx, n)
}

// Where the files of a fork are.
const (
	FilesWorktree = "worktree" // in a worktree of its own, as they were at that step
	FilesHere     = "here"     // where the other thread has them, as they were at that step
	FilesKeep     = "keep"     // where the other thread has them, as they are
)

// forkFiles is the workspace of a fork, at a node of a thread whose files are kept.
func (e *Engine) forkFiles(ctx context.Context, id string, t *thread.Thread, o ForkOptions, facts heads.Facts) (*heads.Workspace, error) {
	of, err := e.Heads.Facts(ctx, facts.Fork.Thread)
	if facts.Fork.Thread == "" || err != nil {
		return facts.Workspace, err
	}
	w := of.Workspace
	kept := w != nil && w.Mode != AsItIs || of.Imported != nil && t.Last != nil && t.Last.Files != nil
	switch {
	case o.Files != "" && !kept:
		return nil, noFiles(&NoFilesError{Step: t.Head})
	case facts.Foreign() || !kept:
		return facts.Workspace, nil
	case o.Cwd != "" && o.Files == FilesWorktree:
		w = &heads.Workspace{Mode: InPlace, Root: facts.Workspace.Root}
	case o.Cwd != "":
		if here, err := e.inPlace(ctx, facts.Workspace.Root); err == nil {
			return here, nil
		}
		return facts.Workspace, nil
	case w == nil:
		return facts.Workspace, nil
	case o.Files == FilesKeep && w.Mode == InPlace:
		return w, nil
	case w.Mode != InPlace && (o.Files == FilesKeep || o.Files == FilesHere):
		return nil, fault.Hinted(fault.New(protocol.CodeFailed, "%s belongs to thread %s", place.Shown(w.Root), facts.Fork.Thread), "without --files the fork gets a worktree of its own", "--cwd DIR lets it work elsewhere")
	}
	tree, err := e.treeAt(ctx, t, o.Before, facts.Fork.Thread)
	var none *NoFilesError
	if errors.As(err, &none) && o.Files == "" && w.Mode == InPlace {
		e.warn(none.Error() + ": the fork works with the files as they are")
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if o.Files == FilesHere {
		return w, e.filesHere(ctx, id, w, tree, facts.Fork.Thread)
	}
	repo, dir, err := e.treeOf(ctx, w, facts.Fork.Thread)
	if err != nil {
		return nil, noWorkTree(w.Root, err)
	}
	base, ok := repo.Commit(ctx, w.Base)
	if !ok {
		base = repo.Head
	}
	name := ""
	if !o.Detached {
		wf, err := t.Workflow(ctx)
		if err != nil {
			return nil, err
		}
		name = cmp.Or(wf.Name, "thread")
	}
	return e.addWorktree(ctx, newTree{id: id, repo: repo, dir: dir, base: base, tree: tree, name: name, foreign: facts.Imported != nil})
}

// treeOf is the work tree of a thread, and where it works in it; if its worktree is
// gone, the same place in that of the repository.
func (e *Engine) treeOf(ctx context.Context, w *heads.Workspace, of string) (repo files.Repo, dir string, err error) {
	if repo, err = files.Find(ctx, e.Env, w.Root); err == nil || w.Mode != InWorktree {
		return repo, w.Root, err
	}
	main, lost := files.Find(ctx, e.Env, filepath.Dir(w.Repo))
	if lost != nil || !sameFile(main.Common, w.Repo) {
		return repo, "", err
	}
	rel, ok := place.Below(e.Dirs.Worktree(of), w.Root)
	if !ok {
		rel = "."
	}
	return main, filepath.Join(main.Root, rel), nil
}

// treeAt is the state of the files at a node of a thread: that before a step, if one is
// named, else that after the node; before the thread's first step, what that began with.
func (e *Engine) treeAt(ctx context.Context, t *thread.Thread, before protocol.Hash, of string) (protocol.Tree, error) {
	if before == "" && t.Last != nil {
		step, err := e.filesOf(ctx, t)
		return step.After, err
	}
	if before == "" {
		head, _, err := e.lookup(ctx, of)
		if err != nil {
			return "", err
		}
		chain, err := thread.Open(ctx, e.nodes(), head)
		if err != nil {
			return "", err
		}
		for s, err := range chain.Steps(ctx) {
			if err != nil {
				return "", err
			}
			before = s.Hash
		}
		if before == "" {
			return "", noFiles(&NoFilesError{Step: t.Head})
		}
	}
	first, err := thread.Open(ctx, e.nodes(), before)
	if err != nil {
		return "", err
	}
	step, err := e.filesOf(ctx, first)
	return step.Before, err
}

// filesHere puts the files of a fork where the other thread works, if they are those
// that this one has left.
func (e *Engine) filesHere(ctx context.Context, id string, w *heads.Workspace, tree protocol.Tree, of string) error {
	head, _, err := e.lookup(ctx, of)
	if err != nil {
		return err
	}
	last, err := e.StepFiles(ctx, head)
	if err != nil {
		return err
	}
	k, err := e.openFiles(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.release()
	return e.restore(ctx, k, id, last.After, tree)
}
