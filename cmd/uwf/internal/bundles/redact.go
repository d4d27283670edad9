package bundles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/redaction"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
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
	done, err := redaction.Node(ctx, e, s, id, h, redact.Options{Reason: c.String("reason"), Shared: c.Bool("shared")})
	for _, path := range done.Copies {
		a.Messagef("uwf: also removed from %s", path)
	}
	if len(done.Half) > 0 {
		a.Messagef("uwf: also redacted %d unfinished turns of the last run", len(done.Half))
	}
	if err != nil {
		return redactError(id, err)
	}
	if !done.Already {
		a.Messagef("uwf: copies may remain in later prompts, other homes, bundles, backups and the agent's own files")
	}
	return a.Print(done.Done, func(w *term.Page) { redactedText(w, done.Done) })
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
