package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// copies are the files beside the store that may hold the texts of a node: those
// of the last runs of its threads and of their sessions. All can be done without: a
// session that is gone costs a whole prompt.
type copies struct {
	dirs     home.Dirs
	threads  []string
	texts    *secret.Set
	sessions []string // ids
}

// newCopies remembers the texts of a node; one that cannot be read has none.
func newCopies(ctx context.Context, e *engine.Engine, h cas.Hash) (*copies, error) {
	c := &copies{dirs: e.Dirs, texts: secret.NewSet()}
	n, err := e.Store.Get(ctx, h)
	if err != nil {
		return c, ctx.Err() // the redaction says it
	}
	v, err := n.Value()
	if err != nil {
		return c, err
	}
	c.learn(v)
	return c, nil
}

// of adds the files of threads; those of other homes are not known.
func (c *copies) of(ctx context.Context, e *engine.Engine, threads ...string) error {
	standings, err := heads.Standings(ctx, e.Heads)
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

// findSessions looks for the ids of a thread's sessions: its steps name them, and of a
// try that made no step, or a step that was replaced, the agent's own note does.
func (c *copies) findSessions(ctx context.Context, e *engine.Engine, id string, head cas.Hash) error {
	chain, err := thread.Open(ctx, e.Store, head)
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
	notes, err := filepath.Glob(filepath.Join(c.dirs.Sessions(), "*", id+".*.json"))
	for _, path := range notes {
		var note struct{ SessionID string }
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &note) == nil {
			c.sessions = append(c.sessions, note.SessionID)
		}
	}
	return err
}

// ours reports whether a file is of the threads' runs or sessions.
func (c *copies) ours(path string) bool {
	name := filepath.Base(path)
	return slices.ContainsFunc(c.threads, func(id string) bool {
		return filepath.Dir(path) == c.dirs.Run(id) || strings.HasPrefix(name, id+".")
	}) ||
		slices.ContainsFunc(c.sessions, func(id string) bool { return strings.Contains(name, id) })
}

// learn takes over the texts of a value. Each line of a text is one: a session may
// have it numbered or cut.
func (c *copies) learn(v any) {
	const least = 16 // shorter ones are in many files that have nothing to do with it
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

// remove removes the files and returns those that it has removed.
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
