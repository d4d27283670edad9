package storeremote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// redactedFile lists the contents of files that were redacted here, a line each. They are neither
// asked for nor taken again.
const redactedFile = "redacted"

// maxList bounds that file, in bytes: a million contents.
const maxList = 64 << 20

func (r *Remote) redactedPath() string { return filepath.Join(r.dir, "objects", redactedFile) }

// redacted are the contents that were redacted here.
func (r *Remote) redacted() (map[protocol.Tree]bool, error) {
	text, err := careful.ReadFile(r.redactedPath(), maxList, careful.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	gone := map[protocol.Tree]bool{}
	for _, id := range strings.Fields(string(text)) {
		gone[protocol.Tree(id)] = true
	}
	return gone, err
}

// Redact removes a file or a directory from the objects, for the states of a thread's files that
// have it: the content is removed unless another file has it, too, which Remains lists. shared
// includes the states of other threads; without it, one that has the path is an error.
func (r *Remote) Redact(ctx context.Context, id, name string, shared bool) (out protocol.FilesRedacted, err error) {
	out = protocol.FilesRedacted{Thread: id, Path: name, Remains: []string{}}
	held, err := r.lock(ctx, "remote-put", durable.Lock)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	facts, err := r.index.AllFacts(ctx)
	if err != nil {
		return out, err
	}
	states, err := r.states(ctx, facts)
	if err != nil {
		return out, err
	}
	gone, others := contents{}, filesIn{Remote: r, found: contents{}, seen: contents{}}
	for thread, trees := range states {
		at := filesIn{Remote: r, found: gone, seen: contents{}}
		if before := facts[thread].Redacted; before != nil {
			at.before = before.Paths
		}
		held := 0
		for _, tree := range trees {
			if at.split(tree, "", name, others) {
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
	case out.States == 0:
		return protocol.FilesRedacted{}, nil
	case len(out.Also) > 0 && !shared:
		return out, &protocol.Error{
			Code:    protocol.CodeInvalid,
			Message: fmt.Sprintf("%s is also kept of the threads %s (--shared redacts it in all of them)", name, strings.Join(out.Also, ", ")),
		}
	}
	for content := range gone {
		if o, err := r.readObject(content); err == nil && len(o.Content) == 0 {
			delete(gone, content) // the empty file is no secret
		} else if others.found[content] {
			delete(gone, content)
			out.Remains = append(out.Remains, "a file at another path: "+string(content))
		}
	}
	slices.Sort(out.Remains)
	return out, r.remove(ctx, name, append(out.Also, id), gone)
}

type contents = map[protocol.Tree]bool

// filesIn collects the contents of files.
type filesIn struct {
	*Remote
	found, seen contents // of files, and directories that were looked into
	before      []string // paths that were redacted before
}

// entries are those of a directory; none if it is not here.
func (r *Remote) entries(dir protocol.Tree) []bundle.Entry {
	o, err := r.readObject(dir)
	if err != nil {
		return nil
	}
	entries, _ := bundle.Entries(dir, o.Content)
	return entries
}

// add collects a file, or those in a directory.
func (f filesIn) add(e bundle.Entry) {
	switch {
	case !e.Dir:
		f.found[e.ID] = true
	case !f.seen[e.ID]:
		f.seen[e.ID] = true
		for _, below := range f.entries(e.ID) {
			f.add(below)
		}
	}
}

// split collects what is at a path in a directory, which is at another, and reports whether there is
// anything. All else is for others, unless it was redacted before.
func (f filesIn) split(dir protocol.Tree, at, name string, others filesIn) (found bool) {
	for _, e := range f.entries(dir) {
		here := path.Join(at, e.Name)
		isAbove := func(p string) bool { return strings.HasPrefix(p, here+"/") }
		isOf := func(p string) bool { return here == p || strings.HasPrefix(here, p+"/") }
		switch {
		case here == name:
			f.add(e)
			found = true
		case e.Dir && (isAbove(name) || slices.ContainsFunc(f.before, isAbove)):
			found = f.split(e.ID, here, name, others) || found
		case !slices.ContainsFunc(f.before, isOf):
			others.add(e)
		}
	}
	return found
}

// states are the states of the files of all threads here.
func (r *Remote) states(ctx context.Context, facts map[string]heads.Facts) (map[string][]protocol.Tree, error) {
	standings, err := heads.Standings(ctx, r.index)
	if err != nil {
		return nil, err
	}
	states := map[string][]protocol.Tree{}
	for id, at := range standings {
		list := states[id]
		t, err := thread.Open(ctx, r.store, at.Head)
		if err != nil {
			return nil, fmt.Errorf("thread %s: %w", id, err)
		}
		for s, err := range t.Steps(ctx) {
			if err != nil {
				return nil, fmt.Errorf("thread %s: %w", id, err)
			}
			if s.Files != nil {
				list = append(list, s.Files.Before, s.Files.Tree)
			}
		}
		if w := t.Start.Workspace; w != nil {
			list = append(list, w.Tree)
		}
		if repo := facts[id].Repository; repo != nil {
			list = append(list, repo.Tree)
		}
		slices.Sort(list)
		states[id] = slices.DeleteFunc(slices.Compact(list), func(tree protocol.Tree) bool { return !tree.Valid() })
	}
	return states, nil
}

// remove removes contents. The list comes first, so that a command that was killed can be repeated;
// then the facts, which tell the threads' readers; then the files.
func (r *Remote) remove(ctx context.Context, name string, threads []string, gone contents) error {
	before, err := r.redacted()
	if err != nil {
		return err
	}
	all := maps.Clone(gone)
	maps.Copy(all, before)
	var list strings.Builder
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list.WriteString(string(id) + "\n")
	}
	if err := durable.Replace(r.disk, r.redactedPath(), []byte(list.String()), 0o600); err != nil {
		return err
	}
	said := &heads.Redacted{Paths: []string{name}, Contents: slices.Sorted(maps.Keys(gone))}
	for _, id := range threads {
		facts, err := r.index.Facts(ctx, id)
		if err == nil {
			err = r.index.SetFacts(ctx, id, heads.Facts{Redacted: said.And(cmp.Or(facts.Redacted, &heads.Redacted{}))})
		}
		if err != nil {
			return err
		}
	}
	for id := range gone {
		if err := r.disk.Remove(r.object(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
