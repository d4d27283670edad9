package remotes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/engine/redaction"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
)

// What the owner of a remote redacts reaches each home when it next pushes or pulls. Only a remote that the user
// trusts can make it remove content; otherwise it prints the command that does.

// heed carries out the redactions of nodes at the remote. The store must not be locked.
func (l *Link) heed(ctx context.Context) error {
	if l.heeded {
		return nil
	}
	l.heeded = true
	known := l.heededStates()
	list, state, err := l.Remote.Redactions(ctx, known[l.Address])
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	complete := true
	for _, r := range list {
		done, err := l.heedNode(ctx, r)
		if err != nil {
			return err
		}
		complete = complete && done
	}
	if !complete || state == known[l.Address] || l.Address == "" {
		return nil
	}
	known[l.Address] = state
	return durable.ReplaceJSON(durable.OS(), l.heededPath(), known)
}

// mostSuggested bounds the commands that are suggested for one thread.
const mostSuggested = 3

// maxHeeded is the maximum size in bytes of the file with the states of lists, enough for thousands of remotes.
const maxHeeded = 1 << 20

// heededPath returns the path of the file with the states of the remotes' lists of redactions, by address. Without
// it, all redactions are looked at again.
func (l *Link) heededPath() string {
	return filepath.Join(l.Engine.Reader.Dirs.Home, "redactions.json")
}

func (l *Link) heededStates() map[string]string {
	var known map[string]string
	text, err := safeopen.ReadFile(l.heededPath(), maxHeeded, safeopen.NoFollow)
	if err != nil || json.Unmarshal(text, &known) != nil || known == nil { // the lists are looked at again
		return map[string]string{}
	}
	return known
}

// heedNode redacts a node that is intact here. done is false if it remains so, or might.
func (l *Link) heedNode(ctx context.Context, r remote.Redaction) (done bool, err error) {
	_, err = l.Store.Get(ctx, r.Hash)
	if _, redacted := cas.AsRedacted(err); err != nil {
		return redacted || errors.Is(err, cas.ErrNotFound), ctx.Err()
	}
	thread, err := l.threadWith(ctx, r)
	if thread == "" {
		return err == nil, ctx.Err() // gc removes it if no thread needs it
	}
	if err != nil {
		return false, err
	}
	if !l.Trusted {
		l.warn("thread %s has node %s, which was redacted on %s (%s)", thread, r.Hash, l.Name, plaintext.Line(r.Reason))
		l.suggest(protocol.Why("node-redacted-there", "thread", thread, "node", string(r.Hash)))
		return false, nil
	}
	redacted, err := redaction.Node(ctx, l.Engine, l.Store, thread, r.Hash, redact.Options{Reason: r.Reason, Shared: true})
	if err != nil {
		l.warn("node %s was redacted on %s, but not here: %v", r.Hash, l.Name, err)
		l.suggest(protocol.Why("node-redacted-there", "thread", thread, "node", string(r.Hash)))
		return false, ctx.Err()
	}
	l.warn("redacted node %s of thread %s, as on %s (%s)", r.Hash, thread, l.Name, plaintext.Line(r.Reason))
	for _, path := range redacted.Copies {
		l.warn("also removed from %s", path)
	}
	return true, nil
}

// threadWith returns a local thread that contains a redacted node, or "" if there is none, with an error if a thread that
// can't be read might contain it.
func (l *Link) threadWith(ctx context.Context, r remote.Redaction) (string, error) {
	if _, known, err := l.standing(ctx, r.Thread); r.Thread != "" && (known || err != nil) {
		return r.Thread, err
	}
	all, failed := heads.ThreadStates(ctx, l.Heads)
	seen := map[cas.Hash]bool{}
	for id, at := range all {
		known := func(h cas.Hash) (bool, error) { return seen[h], nil }
		found := false
		o := graph.BottomUpOptions{Known: known}
		err := graph.BottomUp(ctx, l.Store, []cas.Hash{at.Head}, o, func(v graph.Visited) error {
			seen[v.Node.Hash] = true
			found = found || v.Node.Hash == r.Hash
			return nil
		})
		if found || ctx.Err() != nil {
			return id, ctx.Err()
		}
		failed = cmp.Or(failed, err)
	}
	return "", failed
}

// heedFiles carries out redactions of files that the remote reports for a thread. The store must not be locked.
func (l *Link) heedFiles(ctx context.Context, id string, said *heads.Redacted) error {
	if said = sensibleRedacted(said); said == nil || len(said.Contents) == 0 {
		return nil
	}
	if _, known, err := l.standing(ctx, id); err != nil || !known {
		return err
	}
	intact, err := l.intact(ctx, said.Contents)
	if err != nil || !intact {
		return err
	}
	if !l.Trusted {
		l.warn("thread %s: files redacted on %s are still stored here: %s", id, l.Name, worktree.Abbreviate(said.Paths))
		for _, path := range said.Paths[:min(len(said.Paths), mostSuggested)] {
			l.suggest(protocol.Why("path-redacted-there", "thread", id, "path", path))
		}
		return nil
	}
	for _, path := range said.Paths {
		done, err := l.Engine.Files().Redact(ctx, id, path, true)
		switch {
		case errors.Is(err, &protocol.Error{Code: protocol.CodeNotFound}):
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			l.warn("%s was redacted on %s, but not here: %v", plaintext.Line(path), l.Name, err)
		default:
			l.warn("thread %s: redacted %s, as on %s", id, plaintext.Line(path), l.Name)
			for _, where := range done.Remains {
				l.warn("it remains in %s", plaintext.Line(where))
			}
		}
	}
	return nil
}

// intact reports whether one of the contents of files is stored here and was not redacted. A redacted content can
// still be stored, because it is also that of another file.
func (l *Link) intact(ctx context.Context, contents []protocol.Tree) (bool, error) {
	finder := l.Engine.Files().Finder()
	redacted, err := finder.Redacted(ctx)
	if err != nil {
		return false, err
	}
	contents = slices.DeleteFunc(slices.Clone(contents), func(id protocol.Tree) bool { return redacted[id] })
	stores, err := finder.Stores(ctx)
	if err != nil {
		return false, err
	}
	lacking := contents
	for _, store := range stores {
		if lacking, err = snapshot.Missing(ctx, l.Engine.Reader.Env, store, lacking); err != nil {
			return false, err
		}
	}
	return len(lacking) < len(contents), nil
}
