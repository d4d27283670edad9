// Package redaction redacts a node of a thread in a home, with the copies of its texts beside the store.
package redaction

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/summary"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// Done is the result of [Node].
type Done struct {
	redact.Done
	Copies []string // removed files that contained texts of the node
}

// Store is a store of which nodes can be redacted, and which several homes can use.
type Store interface {
	redact.Store
	// Homes returns the homes that have used the store.
	Homes() ([]string, error)
}

// Node redacts a node of a thread, and removes files of runs and sessions that contain its texts. Only Reason and
// Shared of the options count. Errors are those of [redact.Node], and of removing a file.
func Node(ctx context.Context, e *engine.Engine, s Store, id string, h cas.Hash, o redact.Options) (Done, error) {
	release, err := e.Exclusive(ctx, id)
	if err != nil {
		return Done{}, err
	}
	defer release()
	copies, err := newCopies(ctx, e, h)
	if err != nil {
		return Done{}, err
	}
	if o.Half, err = agentproc.HalfWritten(ctx, e.Reader.Dirs.Run(id)); err != nil {
		return Done{}, err
	}
	o.LooksBack, o.Now = redact.LooksBack, e.Reader.Env.Now
	o.Others = func() (map[string]heads.Heads, error) {
		homes, err := s.Homes()
		return fileheads.Others(e.Reader.Dirs.Home, homes, durable.OS()), err
	}
	var done Done
	if done.Done, err = redact.Node(ctx, s, e.Reader.Heads, id, h, o); err != nil {
		return done, err
	}
	if err := forgetSummaries(e.Reader.Dirs.Home, s); err != nil || done.Already {
		return done, err
	}
	err = copies.of(ctx, e, append([]string{id}, done.Shared...)...)
	removed, failed := copies.remove()
	if done.Copies, err = removed, errors.Join(err, failed); err != nil {
		err = fmt.Errorf("redacted the node, but could not remove a copy of it: %w", err)
	}
	return done, err
}

// forgetSummaries removes the titles that the lists of this home have saved, and if possible those of other homes.
func forgetSummaries(own string, s Store) error {
	homes, err := s.Homes()
	for _, dir := range homes {
		_ = summary.Forget(durable.OS(), home.Dirs{Home: dir}.Summaries()) // it can belong to another user
	}
	if err := errors.Join(err, summary.Forget(durable.OS(), home.Dirs{Home: own}.Summaries())); err != nil {
		return fmt.Errorf("redacted the node, but could not remove what lists show of it: %w", err)
	}
	return nil
}

// copies finds files next to the store that may contain the texts of a node: those of the last runs of its
// threads and of their sessions. All are dispensable: a lost session only costs a full prompt.
type copies struct {
	dirs     home.Dirs
	threads  []string
	texts    *secret.Set
	sessions []string // ids
}

// newCopies collects the texts of a node; an unreadable node has none.
func newCopies(ctx context.Context, e *engine.Engine, h cas.Hash) (*copies, error) {
	c := &copies{dirs: e.Reader.Dirs, texts: secret.NewSet()}
	n, err := e.Reader.Store.Get(ctx, h)
	if err != nil {
		return c, ctx.Err() // the redaction reports the error
	}
	v, err := n.Value()
	if err != nil {
		return c, err
	}
	c.learn(v)
	return c, nil
}

// of adds the files of threads. Those of other homes are not known.
func (c *copies) of(ctx context.Context, e *engine.Engine, threads ...string) error {
	standings, err := heads.ThreadStates(ctx, e.Reader.Heads)
	for _, id := range threads {
		at, here := standings[id]
		if !here {
			continue
		}
		c.threads = append(c.threads, id)
		err = errors.Join(err, c.findSessions(ctx, e, id, at.Head))
	}
	c.sessions = slices.DeleteFunc(c.sessions, func(id string) bool { return len(id) < secret.Shortest })
	return err
}

// findSessions collects the IDs of a thread's sessions: from its steps, and for failed tries and replaced
// steps from the agent's records.
func (c *copies) findSessions(ctx context.Context, e *engine.Engine, id string, head cas.Hash) error {
	chain, err := thread.Open(ctx, e.Reader.Store, head)
	if err != nil {
		return err
	}
	for step, err := range chain.Steps(ctx) {
		if err != nil {
			return err
		}
		id, err := chain.SessionID(ctx, step)
		if err != nil {
			return err
		}
		c.sessions = append(c.sessions, id)
	}
	return c.findNotes(id)
}

// findNotes collects the IDs in the records of agents.
func (c *copies) findNotes(id string) error {
	sessions := os.DirFS(c.dirs.Sessions()) // its path is not a pattern
	notes, err := fs.Glob(sessions, "*/"+id+".*.json")
	for _, path := range notes {
		data, _ := fs.ReadFile(sessions, path) // without it, there is nothing to remove
		for line := range bytes.Lines(data) {
			var note struct{ SessionID string }
			if json.Unmarshal(line, &note) == nil {
				c.sessions = append(c.sessions, note.SessionID)
			}
		}
	}
	return err
}

// ours reports whether a file belongs to the threads' runs or sessions.
func (c *copies) ours(path string) bool {
	name := filepath.Base(path)
	return slices.ContainsFunc(c.threads, func(id string) bool {
		return filepath.Dir(path) == c.dirs.Run(id) || strings.HasPrefix(name, id+".")
	}) ||
		slices.ContainsFunc(c.sessions, func(id string) bool { return strings.Contains(name, id) })
}

// learn collects the texts of a value. Each line counts separately, because a session may contain it numbered
// or truncated.
func (c *copies) learn(v any) {
	const least = 16 // shorter ones occur in many unrelated files
	switch v := v.(type) {
	case string:
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= least && !cas.Hash(line).Valid() {
				c.texts.Add(line)
			}
		}
		if len(strings.TrimSpace(v)) < least && len(v) >= secret.Shortest {
			c.texts.Add(v)
		}
	case []any:
		for _, item := range v {
			c.learn(item)
		}
	case map[string]any:
		for key, item := range v {
			if key != "role" && key != "name" && key != "id" && key != "toolCallId" {
				c.learn(item)
			}
		}
	}
}

// remove removes the files and returns their names.
func (c *copies) remove() (removed []string, err error) {
	if c.texts.Empty() {
		return nil, nil
	}
	kept := []string{runfiles.RecordFile, runfiles.TotalsFile, runfiles.LockFile, runfiles.StdoutFile}
	roots := []string{c.dirs.Sessions()}
	for _, id := range c.threads {
		roots = append(roots, c.dirs.Run(id))
	}
	for _, root := range roots {
		err = errors.Join(err, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || slices.Contains(kept, d.Name()) || !c.ours(path) {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil || !c.texts.Holds(string(data)) {
				return err
			}
			removed = append(removed, path)
			return durable.OS().Remove(path)
		}))
	}
	return removed, err
}
