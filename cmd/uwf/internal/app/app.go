// Package app is one invocation of uwf: its streams and flags, the home, the store and the
// engine that it works with, what a person may call a thread or a step, and how results are
// printed. The packages of commands stand on it.
package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// CasProgram is how hints name the store's commands.
const CasProgram = "uwf cas"

// StoreCLI are the store's commands, once.
func (a *App) StoreCLI() *ocascli.CLI {
	if a.CAS == nil {
		a.CAS = &ocascli.CLI{
			Env: a.Env, Program: CasProgram, Dirs: a.Dirs,
			Format: func() render.Format { return a.Format(nil) },
			Place:  a.Address,
			Files:  keptFiles{a},
		}
	}
	return a.CAS
}

// App is one invocation of the program.
type App struct {
	Env   env.Env
	Flags Globals
	// Status is the exit status of a command that did its work but ended in a
	// state that scripts must see, such as suspended.
	Status protocol.Code
	// Exit is the exit status of a program that was run in this one's place.
	Exit int
	// TextErrors: errors are text only, because they are meant for a model.
	TextErrors bool
	WorksAt    string      // the remote that --remote names
	projects   sync.Map    // whose settings were told
	Steps      atomic.Bool // the command runs agents, or looks at what would run
	creates    bool        // the command makes a home or store that is not there
	Takes, Yes bool        // a workflow from elsewhere is to be run, and is taken without a question
	shown      atomic.Pointer[Display]
	warned     sync.Map  // what was told once
	exposed    sync.Once // warns of keys that others can read
	diagnose   sync.Once
	diagnosis  box.Diagnosis // of this machine, once it was asked for
	catalog    *catalog.Catalog
	FS         *fsstore.Store
	Heads      *fileheads.Heads
	CAS        *ocascli.CLI // the commands of the store
	Bundle     *bundled     // in the place of home and store; nil: none
}

// Globals are the flags that every command knows.
type Globals struct {
	Format string
	Home   string
	Store  string
	Quiet  bool
	Debug  bool
}

// Format is the format of results: what was asked for, else the command's own,
// else text on a terminal and JSON for a program.
func (a *App) Format(own *render.Format) render.Format {
	if f, err := render.ParseFormat(a.Flags.Format); err == nil {
		return f
	}
	if own != nil {
		return *own
	}
	if a.OnTerminal() {
		return render.Text
	}
	return render.JSON
}

// Print writes a command's result.
func (a *App) Print(value any, text func(*term.Page)) error {
	if text == nil {
		return render.Print(a.Env.Stdout, a.Format(nil), value, nil)
	}
	return render.Print(a.Env.Stdout, a.Format(nil), value, a.Page(text))
}

// Printf is [App.Print] of a result whose text is one line or two.
func (a *App) Printf(value any, format string, args ...any) error {
	return a.Print(value, func(p *term.Page) { p.Printf(format, args...) })
}

// Page is a text for people, written to any stream.
func (a *App) Page(text func(*term.Page)) func(io.Writer) error {
	return func(w io.Writer) error {
		p := &term.Page{To: w, Colours: cmdline.Colours(a.Env, a.Env.Stdout)}
		text(p)
		return p.Err()
	}
}

// Dirs are the directories in force. Errors: see [App.checkHome].
func (a *App) Dirs() (home.Dirs, error) {
	if a.Bundle != nil {
		return a.Bundle.dirs(), nil
	}
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil {
		return dirs, err
	}
	return dirs, a.checkHome(dirs)
}

// Store opens the node store; it need not exist.
func (a *App) Store(ctx context.Context) (cas.Store, error) {
	if a.Bundle != nil {
		return a.Bundle.file, nil
	}
	if a.FS != nil {
		return a.FS, nil
	}
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	s, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home})
	if err != nil {
		return nil, ocascli.StoreError(err, CasProgram)
	}
	if err := a.checkStore(dirs, s.Exists()); err != nil {
		return nil, err
	}
	a.FS = s
	return s, nil
}

// LockStore keeps the collector away while nodes are put that the index does not
// name yet.
func (a *App) LockStore(ctx context.Context) (release func(), err error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	done, err := cas.LockShared(ctx, s)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // the end of the process gives it back, too
}

// Index is the heads, facts and registry of the home.
func (a *App) Index() (*fileheads.Heads, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	if a.Heads == nil {
		// Beside the store of a newer uwf the index, too, is not ours to touch.
		if a.Bundle == nil {
			if err := fsstore.Readable(dirs.Store); err != nil {
				return nil, ocascli.StoreError(err, CasProgram)
			}
		}
		a.Heads = fileheads.Open(dirs.Home, durable.OS())
	}
	return a.Heads, nil
}

// Engine puts the parts together. The config is read only when a step needs it. show is called
// with what happens to threads; nil: nothing of it is shown.
func (a *App) Engine(ctx context.Context, show func(engine.Event)) (*engine.Engine, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	x, err := a.Index()
	if err != nil {
		return nil, err
	}
	with := &engine.Engine{
		Reader: status.Reader{
			Dirs: dirs, FS: durable.OS(), Store: s, Heads: x,
			Warn:  func(text string) { a.warnOnce(plaintext.Line(text)) },
			Hints: func(why ...protocol.Reason) []string { return hints.Of(a.WorksAt, why...) },
		},
		Turns: show != nil, Uwf: a.Env.Exe,
		Events: func(ev engine.Event) {
			if ev.Kind == engine.Warning {
				a.warnOnce(plaintext.Line(ev.Text))
			} else if show != nil {
				show(ev)
			}
		},
	}
	if a.Flags.Debug {
		with.Log = host.Decisions(a.Env.Stderr)
	}
	if err := with.Configure(a.Env); err != nil {
		return nil, err
	}
	with.Loaded = func(project string, err error) {
		a.Steps.Store(true)
		if err != nil {
			return
		}
		a.exposed.Do(func() { a.warnExposed(dirs) })
		if _, said := a.projects.LoadOrStore(project, true); !said && project != "" {
			a.Say("uwf: with the settings of %s", plaintext.Line(a.Workflows().Shown(project)))
		}
	}
	host.Equip(ctx, with, a.Env)
	return with, nil
}

// warnOnce tells a warning, the first time that it is given: each step of an agent gives
// its own again.
func (a *App) warnOnce(text string) {
	a.SayOnce(text, "uwf: warning: "+text)
}

// SayOnce tells what is the same whenever it is about the same.
func (a *App) SayOnce(about, text string) {
	if _, told := a.warned.LoadOrStore(about, true); !told {
		a.Say("%s", text)
	}
}

// warnExposed warns of keys that others can read.
func (a *App) warnExposed(dirs home.Dirs) {
	for _, warning := range config.Exposed(dirs.Config(), dirs.DotEnv()) {
		a.Say("uwf: warning: %s", warning)
	}
}

// OnTerminal reports whether a person reads the results, in a pager or not.
func (a *App) OnTerminal() bool { return terminal.Is(a.Env.Stdout) }

// Workflows are those that can be named from here.
func (a *App) Workflows() *catalog.Catalog {
	if a.catalog == nil {
		a.catalog = &catalog.Catalog{
			Env: a.Env, Store: a.Store, Secrets: a.Secrets, Fetch: a.fetched,
			Registry: func() (heads.Registry, error) { return a.Index() },
			Note:     func(text string) { a.Say("note: %s", text) },
			Warn:     func(text string) { a.Say("uwf: warning: %s", text) },

			Templates: templates.Names(),
		}
	}
	return a.catalog
}

// Secrets are those of the home that is in force, as far as it has any.
func (a *App) Secrets() *secret.Set {
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil {
		return secret.NewSet()
	}
	return secret.NewSet(config.Secrets(dirs.Config(), dirs.DotEnv(), a.Env)...)
}

// Width is that of the terminal to which results go; 0 if they go elsewhere.
func (a *App) Width() int {
	columns, _ := terminal.Size(a.Env.Stdout)
	return columns
}

// FormatFlag is --format of a command whose result has forms of its own. It
// stands in for the global flag, so its names must hold all that make sense. A
// name that the whole program knows holds for errors, too; with any other, an
// error is text.
func (a *App) FormatFlag(names []string, otherwise string) ucli.Flag {
	f := ucli.StringFlag{Name: "format", Usage: fmt.Sprintf("`FORMAT` of the result: %s (default: %s)", strings.Join(names, ", "), otherwise)}
	return term.Checked(f, func(_, name string) error {
		if f, err := render.ParseFormat(name); err == nil && slices.Contains(names, string(f)) {
			a.Flags.Format = string(f)
			return nil
		}
		if a.TextErrors = true; slices.Contains(names, name) {
			return nil
		}
		return cmdline.UsageError(fmt.Sprintf("unknown format %q", name), cmdline.Choices("--format ", name, names)...)
	})
}

// OwnFormat is the value of [App.FormatFlag]; "": it was not given.
func (a *App) OwnFormat(c *ucli.Context) string { return cmp.Or(a.Flags.Format, c.String("format")) }

// AskYes asks the person at the terminal; yes must be said.
func (a *App) AskYes(ctx context.Context, question string) (bool, error) {
	said, err := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, plaintext.Line(question)+" [y/N] ")
	said = strings.ToLower(said)
	return said == "y" || said == "yes", err
}

// Confirm asks a person whether something is meant; script is how it is said without
// being asked.
func (a *App) Confirm(ctx context.Context, question, script string) error {
	if !terminal.Is(a.Env.Stdin) {
		return cmdline.UsageError("nobody can be asked here: "+question, script)
	}
	switch yes, err := a.AskYes(ctx, question); {
	case err != nil:
		return err
	case !yes:
		return &protocol.Error{Code: protocol.CodeFailed, Message: "not done: the answer was no"}
	}
	return nil
}

// Leaf is a command that does something; see [cmdline.Leaf]. A flag that is given
// and empty comes of a variable that is not set: without it, the command would do
// something else than was meant.
func (a *App) Leaf(c ucli.Command, run func(ctx context.Context, c *ucli.Context) error) *ucli.Command {
	flags := c.Flags
	return cmdline.Leaf(c, func(ctx context.Context, cc *ucli.Context) error {
		for _, f := range flags {
			name := f.Names()[0]
			if _, text := f.(*ucli.StringFlag); text && cc.IsSet(name) && cc.String(name) == "" && name != "prompt" {
				return cmdline.UsageError("flag --"+name+" is empty", cc.Command.HelpName+" --help")
			}
		}
		return run(ctx, cc)
	})
}

// Group is a command that only holds others.
func (a *App) Group(c ucli.Command) *ucli.Command { return cmdline.Group(a.Env.Stderr, c) }

// Say tells the user something on stderr that is not a result; on a terminal before the
// lines that count.
func (a *App) Say(format string, args ...any) {
	if a.Flags.Quiet {
		return
	}
	text := plaintext.Indent(fmt.Sprintf(format, args...))
	if v := a.shown.Load(); v != nil && v.live && (v.w == a.Env.Stderr || a.sameScreen()) {
		v.note(text)
		return
	}
	fmt.Fprintln(a.Env.Stderr, text)
}

// Hint is a line with the next command to type.
func (a *App) Hint(format string, args ...any) {
	a.Say("hint: %s", fmt.Sprintf(format, args...))
}

// EndsAs sets the exit status of commands that see a thread come to rest: a script
// must notice that a person is needed, or that the thread cannot go on.
func (a *App) EndsAs(out protocol.StepOutput) {
	switch {
	case out.Status == protocol.StatusSuspended && status.AtLimit(out):
		a.Status = protocol.CodeLimit
	case out.Status == protocol.StatusSuspended, out.Status == protocol.StatusRateLimited:
		a.Status = protocol.CodeSuspended
	case out.Status == protocol.StatusFailed:
		a.Status = protocol.CodeWorkflow
	case out.Status == protocol.StatusError && out.Error != nil:
		a.Status = out.Error.Code
	}
}

// OrStdin is a value, or stdin for "-".
func (a *App) OrStdin(value string) (string, error) {
	if value != "-" {
		return value, nil
	}
	data, err := io.ReadAll(a.Env.Stdin)
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

// YesFlag is --yes of a command that asks with [App.Agree].
func YesFlag() *ucli.BoolFlag {
	return &ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "confirm without being asked"}
}

// Agree shows the commands of a workflow or thread and asks whether they may run, then calls
// confirm. With --yes it does not ask.
func (a *App) Agree(ctx context.Context, c *ucli.Context, what string, commands []string, confirm func() error) error {
	if !c.Bool("yes") {
		a.Say("the commands of %s:\n  %s", plaintext.Line(what), plaintext.Indent(strings.Join(commands, "\n")))
		unasked := c.Command.HelpName + " " + c.Args().First() + " --yes"
		if err := a.Confirm(ctx, "may they run, now and later?", unasked); err != nil {
			return err
		}
	}
	return confirm()
}

// AskTrust asks the person at the terminal whether commands may run; elsewhere the answer is no.
func (a *App) AskTrust(ctx context.Context, u *engine.UntrustedError) bool {
	if !terminal.Is(a.Env.Stdin) || !terminal.Is(a.Env.Stderr) {
		return false
	}
	a.Say("%s", plaintext.Indent(u.Error()))
	yes, err := a.AskYes(ctx, "may they run, now and later?")
	return yes && err == nil
}

// PrintAgreed is the result of such a command, for a person.
func PrintAgreed(w *term.Page, what string, commands []string) {
	w.Printf("%s\n", strings.Join(append([]string{"confirmed: " + what}, commands...), "\n  "))
}

// defaultQuota is how many characters a reader gets without asking for more.
const defaultQuota = 4000

// QuotaFlag bounds what is read; see [term.NumberOf].
func QuotaFlag() ucli.Flag {
	f := ucli.StringFlag{Name: "quota", Usage: "at most `N` characters; the newest text wins", Value: strconv.Itoa(defaultQuota)}
	return term.Checked(f, func(_, text string) error {
		if _, err := term.Positive(text); err != nil { // in the original's words
			return cmdline.UsageError("invalid --quota: must be a positive integer, got: "+text, fmt.Sprintf("--quota %d", defaultQuota))
		}
		return nil
	})
}

// Reader opens a thread for reading: as it was when the step in flight began, if
// there is one.
func (a *App) Reader(ctx context.Context, e *engine.Engine, id string, flight *status.Flight) (transcript.Reader, error) {
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return transcript.Reader{}, err
	}
	if flight != nil {
		head = flight.Head
	}
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return transcript.Reader{}, err
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return transcript.Reader{}, err
	}
	return transcript.Reader{
		Store: e.Reader.Store, Thread: t, ID: id, Workflow: wf,
		Changes: e.Files().Totals(ctx, head, worktree.MostTotals), Quoting: a.Quoting(),
	}, nil
}

// Quoting is for models if an agent has started this program during a step.
func (a *App) Quoting() transcript.Quoting {
	during := a.Env.Get(protocol.EnvRunDir) + a.Env.Get(protocol.EnvStartedFor)
	return transcript.Quoting(during != "")
}

// Colour is a colour on a stream that may have them, else none.
func (a *App) Colour(w io.Writer, in terminal.Sequence) terminal.Sequence {
	if cmdline.Colours(a.Env, w) {
		return in
	}
	return terminal.Plain
}

// System is what this machine can do to hold programs back, and why they get no namespaces if so.
func (a *App) System() (config.System, box.Diagnosis) {
	a.diagnose.Do(func() { a.diagnosis = box.Diagnose(a.Env.Exe) })
	return config.System{
		Confines: confine.Level() > 0, Sockets: confine.HoldsSockets(), Namespaces: a.diagnosis.Works(),
	}, a.diagnosis
}
