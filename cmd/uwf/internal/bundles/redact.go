package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// Redact returns the command uwf thread redact.
func (a Commands) Redact() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "redact", ArgsUsage: "<thread>", Usage: "permanently delete the content of a node",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "node", Usage: "`HASH` node to redact (to list them: uwf cas walk <step>)"},
			&ucli.StringFlag{Name: "files", Usage: "`PATH` file or directory to redact, relative to the work tree's root"},
			&ucli.BoolFlag{Name: "artifacts", Usage: "delete the run's artifacts directory"},
			&ucli.BoolFlag{Name: "shared", Usage: "redact even if other threads share it"},
			&ucli.StringFlag{Name: "reason", Usage: "`REASON` text to show in place of the content (not with --files)"},
		},
	}, a.threadRedact)
}

func (a Commands) threadRedact(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	switch {
	case c.Bool("artifacts") && !c.IsSet("node") && !c.IsSet("files"):
		held, err := e.Files().RedactArtifacts(ctx, id)
		if err != nil {
			return err
		}
		return a.Printf(held, "%s removed\n", view.Artifacts(held))
	case c.IsSet("node") == c.IsSet("files") || c.Bool("artifacts"):
		return cmdline.UsageError("missing flag: --node HASH, --files PATH or --artifacts", "--node HASH",
			"--files PATH", "--artifacts")
	case c.IsSet("files"):
		return a.redactFiles(ctx, e, id, c)
	}
	h, err := a.Node(ctx, c.String("node"))
	if err != nil {
		return err
	}
	s, err := a.files(ctx)
	if err != nil {
		return err
	}
	release, err := e.Exclusive(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	copies, err := newCopies(ctx, e, h)
	if err != nil {
		return err
	}
	half, err := agentproc.HalfWritten(ctx, e.Reader.Dirs.Run(id))
	if err != nil {
		return err
	}
	done, err := redact.Node(ctx, s, a.Heads, id, h, redact.Options{
		Reason: c.String("reason"), Shared: c.Bool("shared"), LooksBack: redact.LooksBack, Now: a.Env.Now, Half: half,
	})
	if err != nil {
		return redactError(id, err)
	}
	if !done.Already {
		err := copies.of(ctx, e, append([]string{id}, done.Shared...)...)
		removed, failed := copies.remove()
		err = errors.Join(err, failed)
		for _, path := range removed {
			a.Messagef("uwf: also removed from %s", path)
		}
		if len(done.Half) > 0 {
			a.Messagef("uwf: also redacted %d unfinished turns of the last run", len(done.Half))
		}
		if err != nil {
			return fmt.Errorf("redacted the node, but could not remove a copy of it: %w", err)
		}
		a.Messagef("uwf: copies may remain in later prompts, other homes, bundles, backups and the agent's own files")
	}
	return a.Print(done, func(w *term.Page) { redactedText(w, done) })
}

// redactFiles removes a path from the snapshots of a thread.
func (a Commands) redactFiles(ctx context.Context, e *engine.Engine, id string, c *ucli.Context) error {
	if c.IsSet("reason") {
		return cmdline.UsageError("--reason works only with --node", "leave out --reason")
	}
	done, err := e.Files().Redact(ctx, id, c.String("files"), c.Bool("shared"))
	there, rerr := a.redactObjects(ctx, done, c.Bool("shared"))
	if coded := (*protocol.Error)(nil); there.States > 0 && errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		err = nil
	}
	if err := errors.Join(err, rerr); err != nil {
		return err
	}
	done.States += there.States
	done.Remains = append(done.Remains, there.Remains...)
	done.Also = slices.Compact(slices.Sorted(slices.Values(append(done.Also, there.Also...))))
	for _, where := range done.Remains {
		a.Messagef("uwf: it remains in %s", plaintext.Line(where))
	}
	a.Messagef("uwf: it stays in the work tree, but later snapshots leave it out unless git tracks it; copies may " +
		"remain in other homes, bundles and backups")
	return a.Printf(done, "redacted %s from %s\n", plaintext.Line(done.Path), render.Count(done.States, "state")+" of the files")
}

// redactObjects removes it from files that other homes have pushed to this one.
func (a Commands) redactObjects(
	ctx context.Context, what protocol.FilesRedacted, shared bool,
) (protocol.FilesRedacted, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return protocol.FilesRedacted{}, err
	}
	if _, err := os.Lstat(filepath.Join(dirs.Home, "objects")); err != nil || !fs.ValidPath(what.Path) {
		return protocol.FilesRedacted{}, nil
	}
	r, err := storeremote.Open(ctx, dirs.Home, storeremote.Options{Now: a.Env.Now})
	if err != nil {
		return protocol.FilesRedacted{}, err
	}
	return r.Redact(ctx, what.Thread, what.Path, shared)
}

func redactedText(w *term.Page, d redact.Done) {
	what := "redacted"
	if d.Already {
		what = "was redacted before"
	}
	w.Printf("%s  %s\n", d.Node, what)
	if len(d.Shared) > 0 {
		w.Printf("also for thread %s\n", strings.Join(d.Shared, ", "))
	}
}

func redactError(id string, err error) error {
	var (
		needed *redact.NeededError
		shared *redact.SharedError
	)
	coded := &protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err}
	switch {
	case errors.As(err, &needed):
		coded.Hints = []string{"to list the nodes of a step: uwf cas walk " + id + "@-1 --format tree"}
	case errors.As(err, &shared):
		coded.Hints = []string{"to redact it in all of them: uwf thread redact " + id + " --node " + string(shared.Hash) + " --shared"}
	case errors.Is(err, redact.ErrNotPart), errors.Is(err, cas.ErrNotFound):
		coded.Code, coded.Hints = protocol.CodeNotFound, []string{"uwf thread steps " + id}
	default:
		return err
	}
	return coded
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
	notes, err := filepath.Glob(filepath.Join(c.dirs.Sessions(), "*", id+".*.json"))
	for _, path := range notes {
		var note struct{ SessionID string }
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &note) == nil {
			c.sessions = append(c.sessions, note.SessionID)
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

// Seal returns the command uwf thread seal.
func (a Commands) Seal() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "seal", ArgsUsage: "<thread>", Usage: "compute a seal, one SHA-256 over a whole run",
		Flags: []ucli.Flag{expectFlag("`SEAL` compare with an earlier seal; exit 7 if the run has changed")},
	}, a.threadSeal)
}

// sealed is the result of thread seal.
type sealed struct {
	Thread string        `json:"thread"`
	Head   protocol.Hash `json:"head"`
	Seal   string        `json:"seal"`
	New    int           `json:"newNodes"` // sealed for the first time
	Kept   bool          `json:"kept"`     // stored
}

func (a Commands) threadSeal(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	expect := expected(c)
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return err
	}
	out := sealed{Thread: id, Head: head}
	var got cas.Seal
	if expect.IsZero() {
		var kept seal.Kept
		kept, err = seal.Keep(ctx, e.Reader.Store, head)
		if got, out.New, out.Kept = kept.Seal, kept.New, kept.Err == nil; !out.Kept {
			a.Messagef("uwf: could not store the seal; write it down: %v", kept.Err)
		}
	} else { // don't trust what is stored
		got, err = seal.New(e.Reader.Store, seal.Options{}).Seal(ctx, head)
	}
	if err != nil {
		return err
	}
	if !expect.IsZero() && got != expect {
		return cmdline.Coded(protocol.CodeCorrupt, fmt.Sprintf("thread %s has changed: its seal is %s, not %s", id, got, expect),
			"to see whether it has new steps: uwf thread steps "+id, "uwf cas fsck")
	}
	out.Seal = got.String()
	return a.Printf(out, "%v\n", got)
}
