// Package snapshots finds the git objects that the threads of a remote need: those to keep, and those to redact.
package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/gitobject"
)

// Source has the nodes and the objects of threads.
type Source interface {
	Nodes() cas.Reader
	// Object returns an object, verified. The error is a [*remote.MissingError] if it is missing or redacted, and a
	// [*remote.FaultError] or of code corrupt if it is damaged.
	Object(ctx context.Context, id protocol.Tree) (remote.Object, error)
}

// Of returns the snapshots of a thread with a head: those around its steps and the initial one.
func Of(ctx context.Context, r cas.Reader, head cas.Hash, f heads.Facts) ([]protocol.Tree, error) {
	t, err := thread.Open(ctx, r, head)
	if err != nil {
		return nil, err
	}
	var list []protocol.Tree
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Files != nil {
			list = append(list, s.Files.Before, s.Files.Tree)
		}
	}
	if w := t.Start.Workspace; w != nil {
		list = append(list, w.Tree)
	}
	if f.Repository != nil {
		list = append(list, f.Repository.Tree)
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(tree protocol.Tree) bool { return !tree.Valid() }), nil
}

// Plan is what a redaction of files removes.
type Plan struct {
	Done     protocol.FilesRedacted // its result; States is 0 if there is nothing to redact
	Threads  []string               // with a snapshot that contains the path
	Contents map[protocol.Tree]bool
}

// PlanRedaction plans the removal of a file or a directory from the snapshots of a thread. If another file has
// the same content, the content stays, and Remains lists it. shared includes the snapshots of other threads;
// without it, it is an error if another thread contains the path.
func PlanRedaction(ctx context.Context, s Source, x heads.Heads, id, name string, shared bool) (Plan, error) {
	out := protocol.FilesRedacted{Thread: id, Path: name, Remains: []string{}}
	facts, err := x.AllFacts(ctx)
	if err != nil {
		return Plan{Done: out}, err
	}
	states, err := heads.ThreadStates(ctx, x)
	if err != nil {
		return Plan{Done: out}, err
	}
	var unread error
	gone, others := contents{}, filesIn{source: s, found: contents{}, seen: contents{}, unread: &unread}
	for thread, state := range states {
		trees, err := Of(ctx, s.Nodes(), state.Head, facts[thread])
		if err != nil {
			return Plan{Done: out}, fmt.Errorf("thread %s: %w", thread, err)
		}
		at := filesIn{source: s, found: gone, seen: contents{}, unread: &unread}
		if before := facts[thread].Redacted; before != nil {
			at.before = before.Paths
		}
		held := 0
		for _, tree := range trees {
			if at.split(ctx, tree, "", name, others) {
				held++
			}
		}
		if thread == id {
			out.States = held
		} else if held > 0 {
			out.Also = append(out.Also, thread)
		}
	}
	slices.Sort(out.Also)
	switch {
	case unread != nil || out.States == 0:
		return Plan{}, cmp.Or(unread, ctx.Err())
	case len(out.Also) > 0 && !shared:
		return Plan{Done: out}, &protocol.Error{
			Code: protocol.CodeInvalid,
			Message: fmt.Sprintf("%s is also in the snapshots of threads %s; to redact it in all of them: --shared", name,
				strings.Join(out.Also, ", ")),
		}
	}
	for content := range gone {
		if o, err := s.Object(ctx, content); err == nil && len(o.Content) == 0 {
			delete(gone, content) // the empty file contains no secret
		} else if others.found[content] {
			delete(gone, content)
			out.Remains = append(out.Remains, "a file at another path: "+string(content))
		}
	}
	slices.Sort(out.Remains)
	return Plan{Done: out, Threads: append(slices.Clone(out.Also), id), Contents: gone}, ctx.Err()
}

type contents = map[protocol.Tree]bool

// filesIn collects the contents of files.
type filesIn struct {
	source      Source
	found, seen contents // contents of files, and directories already searched
	before      []string // paths redacted before
	unread      *error   // why a directory that exists couldn't be read
}

// entries returns the entries of a directory, or none if it is missing or damaged.
func (f filesIn) entries(ctx context.Context, dir protocol.Tree) []gitobject.Entry {
	o, err := f.source.Object(ctx, dir)
	if err != nil {
		if !errors.As(err, new(*remote.MissingError)) && !errors.As(err, new(*remote.FaultError)) &&
			!errors.Is(err, &protocol.Error{Code: protocol.CodeCorrupt}) {
			*f.unread = err
		}
		return nil
	}
	entries, _ := gitobject.Entries(dir, o.Content)
	return entries
}

// add collects a file, or all files in a directory.
func (f filesIn) add(ctx context.Context, e gitobject.Entry) {
	switch {
	case !e.IsDir():
		f.found[e.ID] = true
	case !f.seen[e.ID]:
		f.seen[e.ID] = true
		for _, below := range f.entries(ctx, e.ID) {
			f.add(ctx, below)
		}
	}
}

// split collects the files at path name in dir, whose own path is at, and reports whether there are any. It
// adds all other files to others, except those redacted before.
func (f filesIn) split(ctx context.Context, dir protocol.Tree, at, name string, others filesIn) (found bool) {
	for _, e := range f.entries(ctx, dir) {
		here := path.Join(at, e.Name)
		isAbove := func(p string) bool { return strings.HasPrefix(p, here+"/") }
		isOf := func(p string) bool { return here == p || strings.HasPrefix(here, p+"/") }
		switch {
		case here == name:
			f.add(ctx, e)
			found = true
		case e.IsDir() && (isAbove(name) || slices.ContainsFunc(f.before, isAbove)):
			found = f.split(ctx, e.ID, here, name, others) || found
		case !slices.ContainsFunc(f.before, isOf):
			others.add(ctx, e)
		}
	}
	return found
}
