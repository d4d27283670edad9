// Package bundles implements the commands for bundles, exported pages, seals and redactions.
package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/keywatch"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/redaction"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/util/threadid"
)

// Commands provides the commands of this package.
type Commands struct{ *app.App }

// Verify returns the command uwf verify.
func (a Commands) Verify() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "verify", ArgsUsage: "<file>", Usage: "verify a bundle and list its threads",
		Flags: []ucli.Flag{expectFlag("`SEAL` require a thread with this seal; exit 7 if there is none")},
	}, a.bundleVerify)
}

func (a Commands) bundleVerify(ctx context.Context, c *ucli.Context) (err error) {
	name := c.Args().First()
	expect := expected(c)
	f, done, err := ocascli.OpenBundle(ctx, a.Env, name)
	if err != nil {
		return unproved(err)
	}
	defer func() { err = errors.Join(err, done()) }()
	report, err := f.Check(ctx)
	if err != nil {
		return ocascli.BundleError(name, err)
	}
	if !expect.IsZero() && !hasSeal(report, expect) {
		return &protocol.Error{Code: protocol.CodeCorrupt, Message: fmt.Sprintf("bundle %s is intact, but no "+
			"thread in it has the seal %s", name, expect)}
	}
	return a.Print(report, func(w *term.Page) { bundleText(w, report) })
}

// unproved returns an error as a failed verification: a file that is not a bundle, or that only a newer
// program can read, is not verified either.
func unproved(err error) error {
	var coded *protocol.Error
	if !errors.As(err, &coded) || coded.Code != protocol.CodeInvalid {
		return err
	}
	return &protocol.Error{Code: protocol.CodeCorrupt, Message: coded.Message, Hints: coded.Hints, Reasons: coded.Reasons, Err: err}
}

// expectFlag returns --expect, whose value is a seal; see [expected].
func expectFlag(usage string) ucli.Flag {
	return term.Checked(ucli.StringFlag{Name: "expect", Usage: usage}, func(_, text string) error {
		if s, err := cas.ParseSeal(text); err != nil || s.IsZero() {
			return cmdline.UsageError(fmt.Sprintf("invalid --expect %q: want a seal of 64 hexadecimal digits", text), "to print one: uwf "+
				"thread seal <thread>")
		}
		return nil
	})
}

// expected returns the value of --expect, or none.
func expected(c *ucli.Context) cas.Seal {
	s, _ := cas.ParseSeal(c.String("expect")) // validated when the flag was parsed
	return s
}

func hasSeal(r bundle.Report, want cas.Seal) bool {
	for _, t := range r.Threads {
		if t.Seal == want.String() {
			return true
		}
	}
	for _, root := range r.Roots {
		if root.Seal == want.String() {
			return true
		}
	}
	return false
}

func bundleText(w *term.Page, r bundle.Report) {
	t := term.NewTable("THREAD", "WORKFLOW", "STATUS", "STEPS", "HEAD", "SEAL")
	for _, th := range r.Threads {
		t.Row(th.Thread, th.WorkflowName, string(th.Status), fmt.Sprint(th.Steps), string(th.Head), sealText(th.Seal, th.Sealed))
	}
	if len(r.Threads) > 0 {
		w.Table(t)
	}
	for _, named := range r.Workflows {
		w.Printf("%s\n", app.NameText(named))
	}
	for _, root := range r.Roots {
		w.Printf("node %s  %s\n", root.Hash, sealText(root.Seal, root.Sealed))
	}
	for _, t := range r.Tombstones {
		ocascli.PrintTombstone(w, t.Hash, t.Reason, t.At, t.Sealed)
	}
	for _, link := range r.Links {
		w.Printf("link %s points out of the work tree; importing it needs --links\n", plaintext.Line(link))
	}
	kept := ""
	if r.Trees > 0 {
		kept = fmt.Sprintf("%s of the files with %s, ", render.Count(r.Trees, "state"), render.Count(r.Objects, "object"))
	}
	w.Printf("intact: %d nodes with %s hashes, %d redacted, %s%d bytes\n", r.Nodes, r.Hash, len(r.Tombstones), kept, r.Bytes)
}

// sealText describes a seal, which the bundle contains or which was only computed.
func sealText(seal string, carried bool) string {
	switch {
	case seal == "":
		return "none: a tombstone does not show its seal"
	case carried:
		return seal
	}
	return seal + " (computed)"
}

// Export returns the command uwf thread export.
func (a Commands) Export() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "export", ArgsUsage: "[thread…]", Usage: "export threads to a bundle",
		Flags: []ucli.Flag{
			ocascli.OutputFlag(), &ucli.BoolFlag{Name: "all", Usage: "all threads, active and ended"},
			&ucli.BoolFlag{Name: "files", Usage: "include the file snapshots of each step"},
			&ucli.BoolFlag{Name: "html", Usage: "write one thread as a self-contained HTML page"},
		},
	}, a.threadExport)
}

func (a Commands) threadExport(ctx context.Context, c *ucli.Context) error {
	args := c.Args().Slice()
	if c.Bool("all") == (len(args) > 0) {
		return cmdline.UsageError("missing threads: name them, or use --all", "uwf thread export @ -o thread.uwfb")
	}
	if c.Bool("html") {
		return a.exportHTML(ctx, c)
	}
	var ids []string
	for _, arg := range args {
		id, err := a.Thread(ctx, arg)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	s, err := a.files(ctx)
	if err != nil {
		return err
	}
	x, err := a.Index()
	if err != nil {
		return err
	}
	// The collector needn't wait: it removes nodes of these threads only if they are undone in the meantime.
	before, err := s.Generation()
	if err != nil {
		return err
	}
	m, err := bundle.Collect(ctx, s, x, ids)
	if err != nil {
		return err
	}
	if len(m.Threads) == 0 {
		return cmdline.NotFound("no threads yet", "uwf thread start <workflow> -p '<task>'")
	}
	output := c.String("output")
	var from bundle.Objects
	if c.Bool("files") {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		objects, missing, err := e.Files().AddFiles(ctx, &m)
		if err != nil {
			return err
		}
		defer func() { _ = objects.Close() }()
		if from = objects; missing > 0 {
			fmt.Fprintln(a.Env.Stderr, "warning: "+render.Count(missing, "snapshot")+" of the files not in the bundle: not on this machine")
		}
		if len(m.Instead) > 0 {
			fmt.Fprintln(a.Env.Stderr, "warning: the bundle has version 3, because files were redacted; older "+
				"versions of uwf cannot read it")
		}
		if len(m.Trees) == 0 {
			fmt.Fprintln(a.Env.Stderr, "warning: the bundle has no files, because these steps have no snapshots")
		}
	}
	looked := keywatch.New(s)
	written, err := ocascli.WriteBundle(ctx, a.Env, output, looked, m, from)
	if now, failed := s.Generation(); errors.Is(err, cas.ErrNotFound) && failed == nil && now != before {
		return &protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: "a thread was undone or removed during the export; run it again"}
	}
	if err != nil {
		return notFetched(err)
	}
	a.warnOfKeys(looked.Found(), m.Threads[0].Thread)
	for _, link := range written.Links {
		fmt.Fprintln(a.Env.Stderr, "warning: link "+plaintext.Line(link)+" points out of the work tree; importing it needs --links")
	}
	if output == "-" {
		return nil
	}
	a.Hint("uwf verify %s", plaintext.Word(output))
	return a.Print(exported{File: output, Threads: len(m.Threads), Written: written}, func(w *term.Page) {
		w.Printf("%s  %s, ", output, render.Count(len(m.Threads), "thread"))
		ocascli.PrintWritten(w, written)
	})
}

// notFetched adds a hint to fetch objects missing from a partial clone; uwf itself fetches nothing.
func notFetched(err error) error {
	var missing *snapshot.MissingError
	if !errors.As(err, &missing) || missing.Partial == "" {
		return err
	}
	return &protocol.Error{
		Code: protocol.CodeFailed, Err: err, Message: fmt.Sprintf("%s is a partial clone, and file %s was never "+
			"fetched", plaintext.Line(missing.Partial), missing.Object),
		Hints: []string{"git -C " + plaintext.Word(missing.Partial) + " fetch --refetch --no-filter", "to export without " +
			"files, leave out --files"},
	}
}

// exported is the result of thread export.
type exported struct {
	File    string `json:"file"`
	Threads int    `json:"threads"`
	bundle.Written
}

// files returns the store as files.
func (a Commands) files(ctx context.Context) (*fsstore.Store, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	files, ok := s.(*fsstore.Store)
	if !ok {
		return nil, cmdline.Invalid("a bundle is read-only", "to import it: uwf thread import FILE")
	}
	return files, nil
}

// Import returns the command uwf thread import.
func (a Commands) Import() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "import", ArgsUsage: "<file>", Usage: "import the threads of a bundle",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "as-new", Usage: "assign a new id if a thread's id is taken or in the future"},
			&ucli.BoolFlag{Name: "no-files", Usage: "skip the file snapshots"},
			&ucli.BoolFlag{Name: "links", Usage: "accept files with symlinks that point outside the work tree"},
			&ucli.BoolFlag{Name: "register", Usage: "register workflows whose names are not taken"},
		},
	}, a.threadImport)
}

func (a Commands) threadImport(ctx context.Context, c *ucli.Context) (err error) {
	name := c.Args().First()
	f, done, err := ocascli.OpenBundle(ctx, a.Env, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	// A new store gets the bundle's hash function.
	s, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home, Hash: f.Algorithm()})
	if err != nil {
		return ocascli.StoreError(err, app.CasProgram)
	}
	a.FS = s
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	o := bundle.ImportOptions{From: name, Now: a.Env.Now, Lock: e.Exclusive, Waits: e.Waiting, Register: c.Bool("register"), Links: c.Bool("links")}
	if !c.Bool("no-files") {
		o.Keep = e.Files().KeepFiles
	}
	if c.Bool("as-new") {
		o.NewID = func() (string, error) { return threadid.New(a.Env.Now(), a.Env.Rand) }
	}
	imported, err := f.Import(ctx, bundle.Target{Store: s, Index: a.Heads}, o)
	if err != nil {
		return importError(name, err)
	}
	for _, t := range imported.Threads {
		if t.Result == bundle.Added || t.Result == bundle.Renamed || t.Result == bundle.Advanced {
			if err := e.Origins().NoteForeign(ctx, t.Head); err != nil {
				return err
			}
		}
	}
	a.hintImported(imported.Threads)
	if slices.ContainsFunc(imported.Workflows, func(w bundle.ImportedWorkflow) bool { return w.Result == bundle.Offered }) {
		a.Hint("to register the names of its workflows: uwf thread import --register %s", name)
	}
	return a.Print(imported, func(w *term.Page) { ocascli.PrintImported(w, imported) })
}

// hintImported prints hints for the first imported thread of each kind that needs a person.
func (a Commands) hintImported(threads []bundle.ImportedThread) {
	first := func(results ...string) (bundle.ImportedThread, bool) {
		at := slices.IndexFunc(threads, func(t bundle.ImportedThread) bool { return t.Parent == "" && slices.Contains(results, t.Result) })
		if at < 0 {
			return bundle.ImportedThread{}, false
		}
		return threads[at], true
	}
	if t, ok := first(bundle.Added, bundle.Renamed, bundle.Advanced); ok {
		a.Hint("to continue an imported thread, choose its directory: uwf thread step %s --cwd %s", t.Thread, plaintext.Word(a.Env.Dir))
	}
	if t, ok := first(bundle.Stays); ok {
		a.Hint("thread %s has ended here and was not changed; to add it under a new id: --as-new", t.Thread)
	}
}

func importError(name string, err error) error {
	var conflict *bundle.ConflictError
	var future *bundle.FutureError
	if errors.As(err, &future) {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err, Hints: []string{
			"to add it under a new id: uwf thread import --as-new " + plaintext.Word(name),
			"check the clock of this machine",
		}}
	}
	var link *bundle.LinkError
	if errors.As(err, &link) {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: name + ": " + err.Error(), Err: err, Hints: []string{
			"to import without files: uwf thread import --no-files " + plaintext.Word(name),
			"to import the links as they are: uwf thread import --links " + plaintext.Word(name),
		}}
	}
	if errors.As(err, &conflict) {
		return &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err, Hints: []string{
			"to add it under a new id: uwf thread import --as-new " + plaintext.Word(name),
			"to read the bundle's thread: uwf thread read " + plaintext.Word(name),
		}}
	}
	return ocascli.BundleError(name, err)
}

// exportedPage is the result of thread export --html.
type exportedPage struct {
	File   string `json:"file"`
	Thread string `json:"thread"`
}

func (a Commands) exportHTML(ctx context.Context, c *ucli.Context) error {
	if c.Bool("all") || c.Args().Len() != 1 {
		return cmdline.UsageError("--html is for one thread", "uwf thread export @ --html -o run.html")
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	output := c.String("output")
	if output == "-" {
		if terminal.Is(a.Env.Stdout) {
			return cmdline.UsageError("cannot print a page on a terminal", "-o run.html")
		}
		return a.writePage(ctx, a.Env.Stdout, e, id, c.Bool("files"))
	}
	path := a.Env.Path(output)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return cmdline.UsageError(output+" is not a file", "--output "+plaintext.Word(filepath.Join(output, "run.html")))
	}
	f, err := durable.Create(durable.OS(), path, 0o600) // a run's contents are private
	if errors.Is(err, fs.ErrNotExist) {
		return cmdline.NotFound("no directory for "+output, "mkdir -p "+plaintext.Word(filepath.Dir(path)))
	}
	if err != nil {
		return err
	}
	if err := a.writePage(ctx, f, e, id, c.Bool("files")); err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Commit(); err != nil {
		return err
	}
	return a.Print(exportedPage{File: output, Thread: id}, func(w *term.Page) {
		w.Values(output, "thread "+id)
	})
}

// writePage has uwf-web write a thread's page.
func (a Commands) writePage(ctx context.Context, w io.Writer, e *engine.Engine, id string, diffs bool) error {
	if _, err := e.Reader.Show(ctx, id); err != nil {
		return err
	}
	dirs := e.Reader.Dirs
	page := webcall.Request{Page: &webcall.Page{Home: dirs.Home, Store: dirs.Store, Thread: id, Diffs: diffs}}
	reply, err := webcall.Write(ctx, a.Env, page, w, "to write Markdown instead: uwf thread read --all "+id)
	a.warnOfKeys(reply.Keys, id)
	return err
}

// warnOfKeys warns about nodes that seem to contain a key.
func (a Commands) warnOfKeys(found map[cas.Hash]string, thread string) {
	hashes := slices.Sorted(maps.Keys(found))
	if len(hashes) == 0 {
		return
	}
	const most = 5
	list := ""
	for _, h := range hashes[:min(len(hashes), most)] {
		list += fmt.Sprintf("\n  %s  %s", h, plaintext.Line(found[h]))
	}
	if more := len(hashes) - most; more > 0 {
		list += fmt.Sprintf("\n  and %d more", more)
	}
	a.Warnf("the export seems to contain a key, in %s:%s", render.Count(len(hashes), "node"), list)
	a.Hint("to remove the content of a node: uwf thread redact %s --node %s --shared", thread, hashes[0])
	a.Hint("to remove a thread's newest output, undo its step first: uwf thread undo %s", thread)
}

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
	if _, err := os.Lstat(filepath.Join(dirs.Home, "objects")); errors.Is(err, fs.ErrNotExist) || !fs.ValidPath(what.Path) {
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
