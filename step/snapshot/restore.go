package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// UnsavedError means that the files differ from the caller's expectation.
type UnsavedError struct {
	Paths []string // some of the paths that differ
}

func (e *UnsavedError) Error() string {
	return "the files have changed since: " + Abbreviate(e.Paths)
}

// InTheWayError lists files that would be overwritten and aren't in any snapshot, because git ignores them or
// they were left out.
type InTheWayError struct{ Paths []string }

func (e *InTheWayError) Error() string {
	return "files that are in no snapshot would be overwritten: " + Abbreviate(e.Paths)
}

// ProtectedError lists directories in which the user can neither replace files nor permit it.
type ProtectedError struct{ Dirs []string }

func (e *ProtectedError) Error() string { return "you cannot write to " + Abbreviate(e.Dirs) }

// Abbreviate formats a few paths for a message.
func Abbreviate(paths []string) string {
	const most = 5
	if n := len(paths) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), n)
	}
	return strings.Join(paths, ", ")
}

// Layout is a tree that is ready to replace the current files.
type Layout struct {
	Taken Taken // the current files
	to    protocol.Tree
	plan  []difference // from the current files
	git   git
	spec  Spec
}

// Prepare takes a snapshot of the files and checks whether a tree can replace them. If have isn't "" and the
// files differ from it, Prepare fails, unless they differ only in redacted paths: such files stay. Files that
// git ignores also stay and are never overwritten. Prepare changes only the permissions of directories in the work tree.
//
// Errors: [*UnsavedError], [*InTheWayError], [*ProtectedError], [*DamagedError], [*GitError].
func Prepare(ctx context.Context, e env.Env, s Spec, have, to protocol.Tree) (l Layout, err error) {
	if l.Taken, err = Take(ctx, e, s); err != nil {
		return l, err
	}
	l.git, l.to, l.spec = of(e.Environ, s), to, s
	if l.Taken.Tree == to {
		return l, nil
	}
	if have != "" && l.Taken.Tree != have {
		differing, err := l.git.differing(ctx, have, l.Taken.Tree)
		if err != nil { // the files differ, but it is unknown where
			return l, errors.Join(err, &UnsavedError{})
		}
		if changed := slices.DeleteFunc(names(differing), s.isRedacted); len(changed) > 0 {
			return l, &UnsavedError{Paths: changed}
		}
		if l.to, err = l.git.graft(ctx, s, to, differing); err != nil {
			return l, err
		}
	}
	if l.plan, err = l.git.differing(ctx, l.Taken.Tree, l.to); err == nil {
		err = free(s.Root, l.plan)
	}
	if err == nil {
		err = open(s.Root, l.plan)
	}
	if err != nil {
		return l, err
	}
	return l, l.git.sound(ctx, e, l.Taken.Tree, l.to)
}

func (s Spec) isRedacted(path string) bool { return skipped(path, s.Redacted) }

// Changes reports whether any file changes.
func (l Layout) Changes() bool { return l.Taken.Tree != l.to }

// Write writes the files. If interrupted, it has written some of them.
func (l Layout) Write(ctx context.Context) error {
	if !l.Changes() {
		return nil
	}
	if _, sparse := setting(l.spec.Keys, "core.sparsecheckout"); sparse {
		if err := l.leaveAbsent(ctx); err != nil {
			return err
		}
	}
	// With a sparse checkout, git would remove all files outside it, also those that an agent has written.
	_, err := l.git.run(ctx, nil, "read-tree", "-m", "-u", "--no-sparse-checkout", sumOf(l.Taken.Tree), sumOf(l.to))
	return err
}

// leaveAbsent changes the files that a sparse checkout omits in the index only, so that git doesn't write them.
func (l Layout) leaveAbsent(ctx context.Context) error {
	absent := slices.DeleteFunc(slices.Clone(l.plan), func(d difference) bool {
		return d.status != 'M' || !IsGone(filepath.Join(l.spec.Root, filepath.FromSlash(d.path)))
	})
	if len(absent) == 0 {
		return nil
	}
	return errors.Join(l.git.enter(ctx, absent), l.git.skip(ctx, l.spec.Root, names(absent)))
}

// Rescued describes files that [Replace] replaced. It is zero if they were all kept elsewhere.
type Rescued struct {
	Ref   string        // keeps the files until it is reused
	Tree  protocol.Tree // the files
	Paths []string      // changed files
}

// Replace replaces the files with those of a tree, regardless of their current content. The files in known
// are kept with a step and needn't be rescued; "" means none. Files that git ignores stay and are never
// overwritten.
//
// Errors: [*InTheWayError], [*DamagedError], [*GitError].
func Replace(ctx context.Context, e env.Env, s Spec, known, to protocol.Tree) (found Rescued, err error) {
	l, err := Prepare(ctx, e, s, "", to)
	if err != nil || !l.Changes() {
		return found, err
	}
	if found.Paths = l.changed(ctx, known); len(found.Paths) > 0 {
		if _, err := l.git.run(ctx, nil, "update-ref", rescueRef(s.Ref), sumOf(l.Taken.Tree)); err != nil {
			return found, err
		}
		found.Ref, found.Tree = rescueRef(s.Ref), l.Taken.Tree
	}
	return found, l.Write(ctx)
}

// Finish completes an interrupted change of the files from one tree to another: it writes the files in which these
// differ, and leaves others alone. It returns the resulting tree. Errors are as for [Replace].
func Finish(ctx context.Context, e env.Env, s Spec, from, to protocol.Tree) (protocol.Tree, Rescued, error) {
	taken, err := Take(ctx, e, s)
	if err != nil {
		return "", Rescued{}, err
	}
	g := of(e.Environ, s)
	plan, err := g.differing(ctx, from, to)
	if err == nil {
		to, err = g.graft(ctx, s, taken.Tree, plan)
	}
	if err != nil {
		return "", Rescued{}, err
	}
	found, err := Replace(ctx, e, s, from, to)
	return to, found, err
}

// changed returns the paths that match neither the new tree nor known.
func (l Layout) changed(ctx context.Context, known protocol.Tree) (paths []string) {
	laid := names(l.plan)
	other, err := l.git.differing(ctx, known, l.Taken.Tree)
	if known == "" || err != nil {
		return laid
	}
	both := names(other)
	return slices.DeleteFunc(laid, func(path string) bool { return !slices.Contains(both, path) })
}

// rescueRef returns the ref that keeps rescued files.
func rescueRef(ref string) string {
	return "refs/uwf-rescue/" + path.Base(ref)
}

// graft returns a tree with the paths of a plan replaced.
func (g git) graft(ctx context.Context, s Spec, tree protocol.Tree, plan []difference) (protocol.Tree, error) {
	index := s.Index + ".graft"
	defer func() { _ = os.Remove(index) }()
	if err := scratch(index); err != nil {
		return "", err
	}
	apart := g.in(s.Git, s.Root, index)
	if _, err := apart.run(ctx, nil, "read-tree", sumOf(tree)); err != nil {
		return "", err
	}
	if err := apart.enter(ctx, plan); err != nil {
		return "", err
	}
	sum, err := apart.line(ctx, append([]string{"write-tree"}, missing(s, "--missing-ok")...)...)
	return treeOf(sum), err
}

// enter changes the index according to a plan.
func (g git) enter(ctx context.Context, plan []difference) error {
	var gone, put bytes.Buffer
	for _, d := range plan {
		if d.status == 'D' {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", d.hash, d.path)
			continue
		}
		fmt.Fprintf(&put, "%s %s\t%s\x00", d.mode, d.hash, d.path)
	}
	_, err := g.run(ctx, append(gone.Bytes(), put.Bytes()...), "update-index", "--replace", "-z", "--index-info")
	return err
}

// open makes the directories writable in which a plan changes entries: git only warns about files that it can't delete,
// and stops at the first one that it can't replace.
func open(root string, plan []difference) error {
	in, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	var protected ProtectedError
	tried := map[string]bool{}
	for _, d := range plan {
		needed := true // git can leave empty directories
		for dir := path.Dir(d.path); !tried[dir]; dir = path.Dir(dir) {
			at := filepath.Join(root, filepath.FromSlash(dir))
			info, err := in.Lstat(dir)
			exists := err == nil && info.IsDir()
			if exists && !writable(at) && in.Chmod(dir, info.Mode()|0o700) != nil && needed {
				protected.Dirs = append(protected.Dirs, at)
			}
			if tried[dir] = exists && needed; dir == "." {
				break
			}
			needed = needed && !exists
		}
	}
	if len(protected.Dirs) > 0 {
		return &protected
	}
	return nil
}

// free returns an error if files that aren't in any snapshot would be overwritten; git itself overwrites
// files that it ignores.
func free(root string, plan []difference) error {
	goes := map[string]bool{}
	for _, d := range plan {
		if d.status != 'A' {
			goes[d.path] = true
		}
	}
	var blocked []string
	for _, d := range plan {
		if d.status == 'A' {
			blocked = append(blocked, inTheWay(root, d.path, goes)...)
		}
	}
	if len(blocked) > 0 {
		slices.Sort(blocked)
		return &InTheWayError{Paths: slices.Compact(blocked)}
	}
	return nil
}

// inTheWay returns the existing files that block a new one: at its path, in place of one of its parent
// directories, or in a directory with its name. It omits files that are removed anyway.
func inTheWay(root, name string, goes map[string]bool) (blocked []string) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(at)))
		switch {
		case err != nil:
			return nil // nothing exists there
		case goes[at]:
			return nil
		case !info.IsDir():
			return []string{at}
		}
	}
	_ = filepath.WalkDir(filepath.Join(root, filepath.FromSlash(name)), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if err != nil || relErr != nil || !d.IsDir() && !goes[rel] {
			blocked = append(blocked, rel)
		}
		if err != nil || len(blocked) > maxListed {
			return fs.SkipAll
		}
		return nil
	})
	return blocked
}
