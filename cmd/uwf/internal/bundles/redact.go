package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Redact is uwf thread redact.
func (a Commands) Redact() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "redact", ArgsUsage: "<thread>", Usage: "remove the content of a node for good, and leave a tombstone under its hash",
		Description: "Everything that leads to the node still verifies, and says \"redacted\" where its content was. Put again,\n" +
			"the content does not come back. What the thread needs to go on is refused. Copies elsewhere stay:\n" +
			"prompts of later steps that quote it, exported bundles, other homes, backups. Files of the last run and\n" +
			"of the agents' sessions that hold it are removed, and half-written turns of the run are redacted along.\n\n" +
			"With --files a path is taken out of the states of the files that are kept with the steps, and of later ones\n" +
			"unless git tracks it. It stays in the work tree; where it is still kept is printed.\n\n" +
			"   uwf thread redact @ --files config/key.pem",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "node", Usage: "the `HASH` of the node, such as a turn; uwf cas walk <step> --format tree shows them"},
			&ucli.StringFlag{Name: "files", Usage: "the `PATH` of a file or a directory, below the root of the work tree"},
			&ucli.BoolFlag{Name: "shared", Usage: "redact the node or the path even if other threads share it"},
			&ucli.StringFlag{Name: "reason", Usage: "the reason, a `TEXT` that everybody will see in the place of the node; not with --files, which leaves nothing in its place"},
		},
	}, a.threadRedact)
}

func (a Commands) threadRedact(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	switch {
	case c.IsSet("node") == c.IsSet("files"):
		return cmdline.UsageError("what is to be redacted: a node, or a path of the files?", "--node HASH", "--files PATH")
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
	half, err := agentproc.HalfWritten(ctx, e.Dirs.Run(id))
	if err != nil {
		return err
	}
	done, err := redact.Node(ctx, s, a.Heads, id, h, redact.Options{
		Reason: c.String("reason"), Shared: c.Bool("shared"), LooksBack: looksBack, Now: a.Env.Now, Half: half,
	})
	if err != nil {
		return redactError(id, err)
	}
	if !done.Already {
		err := copies.of(ctx, e, append([]string{id}, done.Shared...)...)
		removed, failed := copies.remove()
		err = errors.Join(err, failed)
		for _, path := range removed {
			a.Say("uwf: it was in %s, too: removed", path)
		}
		if len(done.Half) > 0 {
			a.Say("uwf: %d half-written turns of the last run were redacted along", len(done.Half))
		}
		if err != nil {
			return fmt.Errorf("the node is redacted, but a copy of it is not removed: %w", err)
		}
		a.Say("uwf: copies may be in later prompts that quote it, in other homes, in bundles and backups, and where the agent's program keeps its own")
	}
	return a.Print(done, func(w io.Writer) error { return redactedText(w, done) })
}

// redactFiles takes a path out of what is kept of a thread's files.
func (a Commands) redactFiles(ctx context.Context, e *engine.Engine, id string, c *ucli.Context) error {
	if c.IsSet("reason") {
		return cmdline.UsageError("--reason is for nodes: nothing is left in the place of files", "leave out --reason")
	}
	done, err := e.ThreadFiles().Redact(ctx, id, c.String("files"), c.Bool("shared"))
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
		a.Say("uwf: it remains in %s", plaintext.Line(where))
	}
	a.Say("uwf: it stays in the work tree; no later step, undo or redo keeps it again unless git tracks it; copies may be in other homes, bundles and backups")
	return a.Print(done, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  taken out of %s\n", plaintext.Line(done.Path), render.Count(done.States, "state")+" of the files")
		return err
	})
}

// redactObjects does the same for the files that other homes have pushed to this one.
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

func redactedText(w io.Writer, d redact.Done) error {
	what := "redacted"
	if d.Already {
		what = "was redacted before"
	}
	if _, err := fmt.Fprintf(w, "%s  %s\n", d.Node, what); err != nil || len(d.Shared) == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "also for thread %s\n", strings.Join(d.Shared, ", "))
	return err
}

// looksBack reports whether routing may read outputs before the last one: only
// conditions can.
func looksBack(_ context.Context, w protocol.Workflow) (bool, error) {
	for _, node := range w.Graph {
		for _, t := range node.Transitions {
			if t.Condition != "" {
				return true, nil
			}
		}
	}
	return false, nil
}

func redactError(id string, err error) error {
	var (
		needed *redact.NeededError
		shared *redact.SharedError
	)
	coded := &protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err}
	switch {
	case errors.As(err, &needed):
		coded.Hints = []string{"uwf thread show " + id + " --full shows the hashes of details, uwf cas walk <hash> --format tree what is below"}
	case errors.As(err, &shared):
		coded.Hints = []string{"uwf thread redact " + id + " --node " + string(shared.Hash) + " --shared redacts it for all of them"}
	case errors.Is(err, redact.ErrNotPart), errors.Is(err, cas.ErrNotFound):
		coded.Code, coded.Hints = protocol.CodeNotFound, []string{"uwf thread steps " + id}
	default:
		return err
	}
	return coded
}
