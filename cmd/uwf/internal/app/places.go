package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/gitfile"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
)

// creators lists the commands that create a missing home or store, or report it themselves. All others need an
// existing one: for them, a missing directory on the command line is a mistake.
func creators() []string {
	return []string{
		"run", "workflow put", "thread start", "thread import", "remote add", "pull", "fetch", "config set", "config edit", "setup", "doctor", "import-original",
		"cas init", "cas put", "cas put-text", "cas schema put", "cas import",
	}
}

// WithCreators marks the commands that create directories. above is the path of their parent command.
func (a *App) WithCreators(commands []*ucli.Command, above string) {
	for _, c := range commands {
		a.WithCreators(c.Subcommands, above+c.Name+" ")
		if action := c.Action; slices.Contains(creators(), above+c.Name) {
			c.Action = func(cc *ucli.Context) error {
				a.creates = true
				return action(cc)
			}
		}
	}
}

// checkHome returns an error for a home that is not a directory, and for a missing one given on the command
// line unless it would be created.
func (a *App) checkHome(dirs home.Dirs) error {
	info, err := os.Stat(dirs.Home)
	switch {
	case err == nil && !info.IsDir():
		return cmdline.Invalid(fmt.Sprintf("the home %s is not a directory", dirs.Home), "to use another home: "+
			"--home DIR")
	case errors.Is(err, syscall.ENOTDIR):
		return cmdline.Invalid(fmt.Sprintf("the home %s is not a directory: one of its parents is a file", dirs.Home), "to use another "+
			"home: --home DIR")
	case errors.Is(err, fs.ErrNotExist) && a.Flags.Home != "" && !a.creates:
		return cmdline.NotFound("no home at "+dirs.Home,
			"uwf --home "+plaintext.Word(a.Flags.Home)+" setup", "uwf --home "+plaintext.Word(a.Flags.Home)+" workflow put <file.yaml>")
	}
	if info, err := os.Stat(dirs.Store); err == nil && !info.IsDir() {
		return cmdline.Invalid(fmt.Sprintf("the store %s is not a directory", dirs.Store), "to use another store: "+
			"--store DIR")
	}
	return nil
}

// checkStore is like checkHome for the store given by --store.
func (a *App) checkStore(dirs home.Dirs, exists bool) error {
	if exists || a.Flags.Store == "" || a.creates {
		return nil
	}
	return cmdline.NotFound("no store at "+dirs.Store, "to use the default store, leave out --store", "uwf cas init --store "+plaintext.Word(a.Flags.Store))
}

// Hide removes secrets from an error, which can quote an agent or a file. It turns the reasons into hints.
func (a *App) Hide(e *protocol.Error) {
	known := a.Secrets()
	e.Message = known.Hide(e.Message)
	e.Hints, e.Reasons = slices.Clone(hints.All(a.WorksAt, e)), nil
	for i, hint := range e.Hints {
		e.Hints[i] = known.Hide(hint)
	}
}

// MissingStore adds to the error about a missing node that the store itself is missing.
func (a *App) MissingStore(e *protocol.Error) {
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil || a.Bundle != nil || !errors.Is(e, cas.ErrNotFound) {
		return
	}
	if _, err := os.Stat(dirs.Store); errors.Is(err, fs.ErrNotExist) {
		e.Hints = append(e.Hints, "no store at "+dirs.Store+"; check OCAS_HOME")
	}
}

// bundled is a bundle (a file with threads and their nodes) that replaces home and store of a read-only command.
type bundled struct {
	file *bundle.File
	Path string // as typed
	name string // the same, if given as an argument; "" if by --bundle
	// home is a directory with only the index of the bundle's threads.
	home string
}

// Reads lets a read-only command work on a bundle, given by --bundle or as its first argument.
func (a *App) Reads(c *ucli.Command) *ucli.Command {
	c.Flags = append(c.Flags, &ucli.StringFlag{Name: "bundle", Usage: "`FILE` read from a bundle instead of the store"})
	run := c.Action
	c.Action = func(cc *ucli.Context) (err error) {
		path, name := cc.String("bundle"), ""
		if path == "" {
			if name, _, _ = strings.Cut(cc.Args().First(), "@"); !a.isBundle(name) {
				return run(cc)
			}
			path = name
		}
		done, err := a.openBundle(cc.Context, path, name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		return run(cc)
	}
	return c
}

// isBundle reports whether an argument is a file that begins like a bundle.
func (a *App) isBundle(arg string) bool {
	if arg == "" {
		return false
	}
	f, err := os.Open(a.Env.Path(arg))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // opened for reading
	start := make([]byte, bundle.Sniff)
	_, err = io.ReadFull(f, start)
	return err == nil && bundle.IsBundle(start)
}

// openBundle replaces the home by a bundle until done is called. Nodes are checked when they are read.
// Completeness is not checked; verify does that.
func (a *App) openBundle(ctx context.Context, path, name string) (done func() error, err error) {
	f, closeFile, err := ocascli.OpenBundle(ctx, a.Env, path)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "uwf-bundle-")
	if err != nil {
		return nil, errors.Join(err, closeFile())
	}
	a.Bundle = &bundled{file: f, Path: path, name: name, home: dir}
	done = func() error {
		a.Bundle = nil
		return errors.Join(closeFile(), os.RemoveAll(dir))
	}
	if err := fileheads.Open(dir, durable.OS()).Adopt(ctx, f.Adoptions(ctx), 0); err != nil {
		return nil, errors.Join(err, done())
	}
	return done, nil
}

// BundleFiles extracts the files of a complete bundle to its temporary home, where the engine finds them.
// Without a bundle it does nothing.
func (a *App) BundleFiles(ctx context.Context, e *engine.Engine) error {
	if a.Bundle == nil || len(a.Bundle.file.Manifest.Trees) == 0 {
		return nil
	}
	if _, err := a.Bundle.file.Check(ctx); err != nil {
		return ocascli.BundleError(a.Bundle.Path, err)
	}
	_, err := e.Files().KeepFiles(ctx, a.Bundle.file)
	return err
}

// NotInBundle replaces the error for missing files by one that says the bundle does not contain them.
func (a *App) NotInBundle(err error) error {
	var none *worktree.NoFilesError
	if a.Bundle == nil || !errors.As(err, &none) || !none.Gone {
		return err
	}
	return cmdline.NotFound("the files of step "+string(none.Step)+" are not in the bundle "+a.Bundle.Path,
		"where the step was made: uwf thread export --files")
}

// HintNames prints the bundle's names for workflows.
func (a *App) HintNames(ctx context.Context) error {
	names, err := a.Bundle.file.Names(ctx)
	for _, named := range names {
		a.Hint("the bundle gives: %s", NameText(named))
	}
	return err
}

// dirs returns the bundle's directories; its home contains nothing else.
func (b *bundled) dirs() home.Dirs {
	return home.Dirs{Home: b.home, Store: filepath.Join(b.home, "cas")}
}

// only returns the only thread of a bundle if arg is the bundle's name.
func (b *bundled) only(ctx context.Context, arg string) (id string, named bool, err error) {
	if b.name == "" || arg != b.name {
		return "", false, nil
	}
	if id = b.file.Only(ctx); id == "" {
		return "", true, cmdline.NotFound(b.name+" does not contain exactly one thread",
			"to list them: uwf verify "+plaintext.Word(b.name), "uwf thread read --bundle "+plaintext.Word(b.name)+" <thread>")
	}
	return id, true, nil
}

// NameText describes the name that a bundle gives to a workflow.
func NameText(w bundle.CheckedWorkflow) string {
	text := fmt.Sprintf("name %s for workflow %s", plaintext.Line(w.Name), w.Hash)
	if w.Name != w.WorkflowName {
		text += fmt.Sprintf(", whose own name is %s; an import leaves it out", plaintext.Line(w.WorkflowName))
	}
	return text
}

// keptFiles lets the store's commands handle the files of steps.
type keptFiles struct{ *App }

// CollectFiles implements ocascli.Files.
func (a keptFiles) CollectFiles(ctx context.Context, homes []string, dry bool, alone func(func() error) error) (any, string, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	done, err := e.Files().CollectFiles(ctx, homes, dry, alone)
	for _, failed := range done.Failed {
		a.Messagef("uwf: %v", failed)
		a.Status = protocol.CodeFailed
	}
	if err != nil || done.Repositories+len(done.Failed) == 0 {
		return nil, "", err
	}
	verb := "forgot"
	if dry {
		verb = "would forget"
	}
	line := fmt.Sprintf("%s the files of %s", verb, render.Count(done.Refs, "thread"))
	if !dry {
		line += fmt.Sprintf(", %d KB freed", max(done.Freed, 0)>>10) // packing can need more space
	}
	if done.Worktrees > 0 {
		line += "\nremoved " + render.Count(done.Worktrees, "worktree") + " that killed commands have left"
	}
	if done.Removed > 0 {
		line += fmt.Sprintf("\nremoved what was kept of %d repositories that are gone", done.Removed)
	}
	return done, line, nil
}

// CheckFiles implements ocascli.Files.
func (a keptFiles) CheckFiles(ctx context.Context, wrong func(fsck.Fault)) (int, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return 0, err
	}
	facts, _ := e.Reader.Heads.AllFacts(ctx) // fsck reports unreadable lines
	return e.Files().CheckFiles(ctx, func(f worktree.FileFault) {
		fault := fsck.Fault{Kind: fsck.Files, Hash: f.Step, Path: f.Store, Threads: []string{f.Thread}, Dependents: 1, Remains: true}
		fault.Message = fmt.Sprintf("the files of this step are damaged: %v", f.Err)
		if f.Err == nil {
			fault.Message = fmt.Sprintf("the files of this step (%s) are not on this machine", f.Tree)
			fault.Remains = facts[f.Thread].Imported == nil && isThere(facts[f.Thread].Workspace)
		}
		wrong(fault)
	})
}

// isThere reports whether a workspace's repository exists; without it the files are lost.
func isThere(w *heads.Workspace) bool {
	if w == nil || w.Repo == "" {
		return false
	}
	_, err := os.Stat(w.Repo)
	return err == nil
}

// fetched fetches the workflow at an address; ok reports whether text is one. A command that runs the workflow
// ([App.Confirms]) shows each content, has it confirmed once, and pins it; one that only reads it doesn't ask.
func (a *App) fetched(ctx context.Context, text string) (data []byte, file string, ok bool, err error) {
	if !gitfile.Is(text) {
		return nil, "", false, nil
	}
	at, git, lock, err := a.GitFile(text)
	if err != nil {
		return nil, "", true, err
	}
	pin, pinned, err := lock.Find(at)
	if err != nil {
		return nil, "", true, err
	}
	name := path.Base(at.Path)
	f, err := git.Fetch(ctx, at)
	if err != nil {
		if kept := git.Confirmed(pin.Content); pinned && kept != nil {
			a.Warnf("%v; using the pinned content", err)
			return kept, name, true, nil
		}
		return nil, "", true, err
	}
	if pinned && f.Content != pin.Content {
		return nil, "", true, &protocol.Error{
			Code: protocol.CodeInvalid,
			Message: fmt.Sprintf("%s has changed: pinned %s (commit %s), now %s (commit %s)", text,
				pin.Content, plaintext.Line(pin.Commit), f.Content, f.Commit),
			Hints: []string{"to see the changes: uwf workflow update " + plaintext.Word(text)},
		}
	}
	if !a.Confirms {
		return f.Text, name, true, nil
	}
	if git.Confirmed(f.Content) == nil {
		a.ShowFetched(at, f, f.Text)
		if err := a.ConfirmFetched(ctx, text); err != nil {
			return nil, "", true, err
		}
		if err := git.Confirm(f); err != nil {
			return nil, "", true, err
		}
	}
	if !pinned {
		err = lock.Set(at, f)
	}
	return f.Text, name, true, err
}

// GitFile parses an address, and returns what fetches its file and the current project's pins.
func (a *App) GitFile(text string) (gitfile.Address, gitfile.Git, gitfile.Lock, error) {
	at, err := gitfile.Parse(text)
	if err != nil {
		return at, gitfile.Git{}, gitfile.Lock{}, err
	}
	dirs, err := a.Dirs()
	if err != nil {
		return at, gitfile.Git{}, gitfile.Lock{}, err
	}
	root, err := project.From(a.Env, a.Env.Dir).Root()
	return at, gitfile.Git{Env: a.Env, Dirs: dirs}, gitfile.Lock{Root: root}, err
}

// ShowFetched shows the workflow to be confirmed.
func (a *App) ShowFetched(at gitfile.Address, f gitfile.File, text []byte) {
	fmt.Fprintf(a.Env.Stderr, "%s is commit %s, %s:\n\n", plaintext.Line(at.Text), f.Commit, f.Content)
	for line := range strings.Lines(string(text)) {
		fmt.Fprintf(a.Env.Stderr, "  %s\n", plaintext.Line(strings.TrimRight(line, "\r\n")))
	}
	fmt.Fprintln(a.Env.Stderr)
}

// ConfirmFetched asks for confirmation of the workflow shown, unless --yes was given.
func (a *App) ConfirmFetched(ctx context.Context, text string) error {
	if a.Yes {
		return nil
	}
	return a.Confirm(ctx, "use "+text+" as shown above?", "to use it: --yes")
}

// Book returns the remotes configured in the home.
func (a *App) Book() (remotes.Book, error) {
	dirs, err := a.Dirs()
	return remotes.Book{Dirs: dirs, Dir: a.Env.Dir}, err
}

// Remotes lists the remotes in [App.Book].
func (a *App) Remotes() ([]remotes.Known, error) {
	book, err := a.Book()
	if err != nil {
		return nil, err
	}
	return book.All()
}

// Link connects the home to a remote until done is called.
func (a *App) Link(ctx context.Context, name string, show func(engine.Event)) (l *remotes.Link, done func(), err error) {
	e, err := a.Engine(ctx, show)
	if err != nil {
		return nil, nil, err
	}
	if a.Bundle != nil {
		return nil, nil, cmdline.Invalid("a bundle has no remotes")
	}
	return remotes.Open(ctx, e, a.Env, name, remotes.OpenOptions{
		Program: "uwf " + cmdline.Version(), Stalled: func(far string) { a.Messagef("waiting for %s…", far) },
		Warn: func(text string) { a.Warnf("%s", plaintext.Line(text)) },
		Suggest: func(why protocol.Reason) {
			for _, hint := range hints.Of("", why) {
				a.Hint("%s", hint)
			}
		},
	})
}

// ThreadAt resolves a thread argument at a remote: a local thread, a full ID, or the unique beginning or end
// of an ID there.
func (a *App) ThreadAt(ctx context.Context, l *remotes.Link, arg string) (string, error) {
	if id, err := threadid.Parse(arg); err == nil {
		return id, nil
	}
	id, err := a.Thread(ctx, arg)
	if err == nil {
		return id, nil
	}
	part, ok := names.Part(arg)
	if !ok {
		return "", err
	}
	ids, listErr := l.Like(ctx, part)
	switch {
	case listErr != nil:
		return "", listErr
	case len(ids) == 0:
		return "", cmdline.NotFound("thread not found here or on "+plaintext.Line(l.Name)+": "+arg, "uwf remote list "+plaintext.Word(l.Name)+" --all")
	case len(ids) > 1:
		return "", suggest.Ambiguous("thread", arg, ids)
	}
	return ids[0], nil
}

// ThreadIDs returns all threads, active and ended.
func (a *App) ThreadIDs(ctx context.Context) ([]string, error) {
	r, err := a.names()
	if err != nil {
		return nil, err
	}
	return r.Threads(ctx)
}

// names returns a resolver for the home, or for the bundle that replaces it, whose name refers to its only
// thread.
func (a *App) names() (names.Resolver, error) {
	x, err := a.Index()
	r := names.Resolver{
		Heads: x, Store: a.Store, Any: a.Bundle != nil,
		Warn: func(text string) { a.warnOnce(plaintext.Line(text)) },
		Child: func(ctx context.Context, parent, key string) (string, error) {
			e, err := a.Engine(ctx, nil)
			if err != nil {
				return "", err
			}
			return e.Reader.Child(ctx, parent, key)
		},
	}
	if a.Bundle != nil {
		r.Alias = a.Bundle.only
	}
	return r, err
}

// Thread resolves a thread argument.
func (a *App) Thread(ctx context.Context, arg string) (string, error) {
	r, err := a.names()
	if err != nil {
		return "", err
	}
	return r.Thread(ctx, arg)
}

// Node resolves a hash or a unique prefix.
func (a *App) Node(ctx context.Context, arg string) (cas.Hash, error) {
	return names.Resolver{Store: a.Store}.Node(ctx, arg)
}

// Address resolves a step argument.
func (a *App) Address(ctx context.Context, arg string) (cas.Hash, error) {
	_, h, err := a.Place(ctx, arg)
	return h, err
}

// Place is like [App.Address] and also returns the thread that the argument names, or "".
func (a *App) Place(ctx context.Context, arg string) (id string, h cas.Hash, err error) {
	r, err := a.names()
	if err != nil {
		return "", "", err
	}
	return r.Step(ctx, arg)
}

// AddressIn is like [App.Address] for a command about one thread.
func (a *App) AddressIn(ctx context.Context, id, arg string) (cas.Hash, error) {
	r, err := a.names()
	if err != nil {
		return "", err
	}
	return r.StepIn(ctx, id, arg)
}

// Explain adds similar names to an error about a name: a local file, or a node of the store.
func (a *App) Explain(ctx context.Context, e *protocol.Error) {
	for _, r := range e.Reasons {
		switch r.Name {
		case "names-path":
			if near := suggest.File(a.Env.Dir, r.Data["path"]); near != "" {
				r.Data["near"] = near
			}
		case "no-node":
			if s, err := a.Store(ctx); err == nil {
				e.Hints = append(e.Hints, ocascli.NearHashes(ctx, s, r.Data["node"])...)
			}
		}
	}
}

// WithEngine is like [App.Leaf] for a command that needs an engine.
func (a *App) WithEngine(c ucli.Command, run func(context.Context, *ucli.Context, *engine.Engine) error) *ucli.Command {
	return a.Leaf(c, func(ctx context.Context, c *ucli.Context) error {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		return run(ctx, c, e)
	})
}

// OnThread is like [App.Leaf] for a command about the thread in its first argument.
func (a *App) OnThread(
	c ucli.Command, run func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error,
) *ucli.Command {
	return a.Leaf(c, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		return run(ctx, c, e, id)
	})
}

// ThreadAndEngine returns the thread and engine that most thread commands need.
func (a *App) ThreadAndEngine(ctx context.Context, c *ucli.Context, show func(engine.Event)) (string, *engine.Engine, error) {
	id, err := a.Thread(ctx, c.Args().First())
	if err != nil {
		return "", nil, err
	}
	e, err := a.Engine(ctx, show)
	return id, e, err
}

// OpenThread opens the chain that ends at a head.
func (a *App) OpenThread(ctx context.Context, head protocol.Hash) (*thread.Thread, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	return thread.Open(ctx, s, head)
}
