package storeremote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	states, err := r.states(ctx)
	if err != nil {
		return out, err
	}
	if _, known := states[id]; !known {
		return out, fmt.Errorf("%w: %s", heads.ErrNoThread, id)
	}
	w := &redacting{Remote: r, at: strings.Split(name, "/"), contents: map[protocol.Tree]bool{}}
	for _, tree := range states[id] {
		if w.find(tree, w.at) {
			out.States++
		}
	}
	if out.States == 0 {
		return out, nil
	}
	for other, trees := range states {
		if has := func(tree protocol.Tree) bool { return w.find(tree, w.at) }; other != id && slices.ContainsFunc(trees, has) {
			out.Also = append(out.Also, other)
		}
	}
	slices.Sort(out.Also)
	if len(out.Also) > 0 && !shared {
		return out, &protocol.Error{
			Code:    protocol.CodeInvalid,
			Message: fmt.Sprintf("%s is also kept of the threads %s (--shared redacts it in all of them)", name, strings.Join(out.Also, ", ")),
		}
	}
	out.Remains, err = w.remove(ctx, append([]string{id}, out.Also...), states)
	return out, err
}

// states are the states of the files of all threads here.
func (r *Remote) states(ctx context.Context) (map[string][]protocol.Tree, error) {
	standings, err := heads.Standings(ctx, r.index)
	if err != nil {
		return nil, err
	}
	all, err := r.index.AllFacts(ctx)
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
		if repo := all[id].Repository; repo != nil {
			list = append(list, repo.Tree)
		}
		slices.Sort(list)
		states[id] = slices.DeleteFunc(slices.Compact(list), func(tree protocol.Tree) bool { return !tree.Valid() })
	}
	return states, nil
}

// redacting is one redaction of a path.
type redacting struct {
	*Remote
	at       []string
	contents map[protocol.Tree]bool // of the files at the path
}

// entries are those of a directory; none if it is not here.
func (w *redacting) entries(id protocol.Tree) []bundle.Entry {
	o, err := w.readObject(id)
	if err != nil {
		return nil
	}
	entries, _ := bundle.Entries(id, o.Content)
	return entries
}

// find reports whether a directory has a file or a directory at a path, and notes its contents.
func (w *redacting) find(dir protocol.Tree, path []string) bool {
	entries := w.entries(dir)
	at := slices.IndexFunc(entries, func(e bundle.Entry) bool { return e.Name == path[0] })
	if at < 0 {
		return false
	}
	switch e := entries[at]; {
	case len(path) > 1:
		return e.Dir && w.find(e.ID, path[1:])
	case e.Dir:
		w.below(e.ID, w.contents, map[protocol.Tree]bool{})
	default:
		w.contents[e.ID] = true
	}
	return true
}

// below collects the files in a directory, and in those below it.
func (w *redacting) below(dir protocol.Tree, files, seen map[protocol.Tree]bool) {
	if seen[dir] {
		return
	}
	seen[dir] = true
	for _, e := range w.entries(dir) {
		if e.Dir {
			w.below(e.ID, files, seen)
		} else {
			files[e.ID] = true
		}
	}
}

// besides collects the files in a directory except those at a path.
func (w *redacting) besides(dir protocol.Tree, path []string, files, seen map[protocol.Tree]bool) {
	for _, e := range w.entries(dir) {
		switch {
		case e.Name == path[0] && len(path) == 1:
		case e.Name == path[0] && e.Dir:
			w.besides(e.ID, path[1:], files, seen)
		case e.Dir:
			w.below(e.ID, files, seen)
		default:
			files[e.ID] = true
		}
	}
}

// remove removes the contents that no other file has. The list comes first, so that a command
// that was killed can be repeated; then the facts, which tell the threads' readers; then the files.
func (w *redacting) remove(ctx context.Context, threads []string, states map[string][]protocol.Tree) (remains []string, err error) {
	used, seen := map[protocol.Tree]bool{}, map[protocol.Tree]bool{}
	for id, trees := range states {
		for _, tree := range trees {
			if slices.Contains(threads, id) {
				w.besides(tree, w.at, used, seen)
			} else {
				w.below(tree, used, seen)
			}
		}
	}
	remains = []string{}
	for _, id := range slices.Sorted(maps.Keys(w.contents)) {
		if used[id] {
			delete(w.contents, id)
			remains = append(remains, "a file at another path, or of another thread: "+string(id))
		}
	}
	gone, err := w.redacted()
	if err != nil {
		return remains, err
	}
	list := maps.Clone(w.contents)
	maps.Copy(list, gone)
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(list)) {
		text.WriteString(string(id) + "\n")
	}
	if err := durable.Replace(w.disk, w.redactedPath(), []byte(text.String()), 0o600); err != nil {
		return remains, err
	}
	said := &heads.Redacted{Paths: []string{strings.Join(w.at, "/")}, Contents: slices.Sorted(maps.Keys(w.contents))}
	for _, id := range threads {
		facts, err := w.index.Facts(ctx, id)
		if err == nil {
			err = w.index.SetFacts(ctx, id, heads.Facts{Redacted: said.And(cmp.Or(facts.Redacted, &heads.Redacted{}))})
		}
		if err != nil {
			return remains, err
		}
	}
	for id := range w.contents {
		if err := w.disk.Remove(w.object(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return remains, err
		}
	}
	return remains, nil
}
