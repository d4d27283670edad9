// Package app holds the state of one invocation of uwf that its commands share: streams and flags, the home,
// the store and the engine, name resolution, and printing.
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

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

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
	"github.com/united-workforce/uwf/engine/dryrun"
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
)

// App holds the dependencies of a command. Methods open the home, store and engine on first use.
type App struct {
	Env   env.Env
	Flags Globals
	// Status determines the exit status of a command that succeeded but ended in a state that scripts must
	// notice, such as suspended.
	Status protocol.Code
	// Exit is the exit status of a failed uwf-* program that did the command's work.
	Exit      int
	WorksAt   string      // value of --remote
	projects  sync.Map    // projects whose settings were reported
	Steps     atomic.Bool // the command runs agents, or shows what would run
	creates   bool        // the command creates a missing home or store
	Confirms  bool        // the command runs fetched workflows, so their contents must be confirmed
	Yes       bool        // they are confirmed without asking
	shown     atomic.Pointer[Display]
	hints     []string  // printed when the command ends
	warned    sync.Map  // messages shown once
	exposed   sync.Once // warns about keys that other users can read
	diagnose  sync.Once // fills diagnosis
	diagnosis box.Diagnosis
	catalog   *catalog.Catalog
	files     *config.Files
	FS        *fsstore.Store   // see [App.Store]
	Heads     *fileheads.Heads // see [App.Index]
	CAS       *ocascli.CLI     // see [App.StoreCLI]
	Bundle    *bundled         // replaces home and store, or nil
}

// Globals holds the global flags.
type Globals struct {
	Format string
	Home   string
	Store  string
	Quiet  bool
	Debug  bool
}

// Format returns the format for results: the requested one, or else the command's own, or else text on a
// terminal and JSON otherwise.
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

// Print prints a command's result.
func (a *App) Print(value any, text func(*term.Page)) error {
	if text == nil {
		return render.Print(a.Env.Stdout, a.Format(nil), value, nil)
	}
	return render.Print(a.Env.Stdout, a.Format(nil), value, a.Page(text))
}

// Printf is like [App.Print] for a result whose text is a line or two.
func (a *App) Printf(value any, format string, args ...any) error {
	return a.Print(value, func(p *term.Page) { p.Printf(format, args...) })
}

// Page adapts a function that prints on a page to a plain writer, with the width and colours of stdout.
func (a *App) Page(text func(*term.Page)) func(io.Writer) error {
	return func(w io.Writer) error {
		p := &term.Page{To: w, Colours: cmdline.Colours(a.Env, a.Env.Stdout), Width: a.Width()}
		text(p)
		return p.Err()
	}
}

// Dirs returns the directories in use. Errors are those of [App.checkHome].
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

// Store opens the node store, which may not exist.
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

// CasProgram is the name of the store's commands in hints.
const CasProgram = "uwf cas"

// StoreCLI returns the commands of "uwf cas", creating them on first use.
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

// Index opens the heads, facts and registry of the home.
func (a *App) Index() (*fileheads.Heads, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	if a.Heads == nil {
		// If the store belongs to a newer uwf, don't touch the index either.
		if a.Bundle == nil {
			if err := fsstore.Readable(dirs.Store); err != nil {
				return nil, ocascli.StoreError(err, CasProgram)
			}
		}
		a.Heads = fileheads.Open(dirs.Home, durable.OS())
	}
	return a.Heads, nil
}

// Engine opens an engine. The config is read only when a step needs it. show receives thread events; it may
// be nil.
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
			Dirs: dirs, FS: durable.OS(), Store: s, Heads: x, Files: a.filesOf(dirs),
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
		a.exposed.Do(func() {
			for _, warning := range a.filesOf(dirs).Exposed() {
				a.Warnf("%s", warning)
			}
		})
		if _, reported := a.projects.LoadOrStore(project, true); !reported && project != "" {
			a.Messagef("uwf: with the settings of %s", plaintext.Line(a.Workflows().Shown(project)))
		}
	}
	host.Equip(ctx, with, a.Env)
	return with, nil
}

// warnOnce prints a warning the first time; each step of an agent repeats its own.
func (a *App) warnOnce(text string) {
	if a.First(text) {
		a.Warnf("%s", text)
	}
}

// First reports whether a message about a subject was not printed yet.
func (a *App) First(about string) bool {
	_, printed := a.warned.LoadOrStore(about, true)
	return !printed
}

// OnTerminal reports whether results go to a terminal, possibly through a pager.
func (a *App) OnTerminal() bool { return terminal.Is(a.Env.Stdout) }

// Workflows returns the workflows that can be named in this directory.
func (a *App) Workflows() *catalog.Catalog {
	if a.catalog == nil {
		a.catalog = &catalog.Catalog{
			Env: a.Env, Store: a.Store, Secrets: a.Secrets, Fetch: a.fetched,
			Registry: func() (heads.Registry, error) { return a.Index() },
			Note:     func(text string) { a.Messagef("note: %s", text) },
			Warn:     func(text string) { a.Warnf("%s", text) },

			Templates: templates.Names(),
		}
	}
	return a.catalog
}

// Secrets returns the secrets of the current home.
func (a *App) Secrets() *secret.Set {
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil {
		return secret.NewSet()
	}
	return secret.NewSet(a.filesOf(dirs).Secrets(a.Env)...)
}

// filesOf returns the config files of the home.
func (a *App) filesOf(dirs home.Dirs) *config.Files {
	if a.Bundle != nil {
		return config.Of(dirs)
	}
	if a.files == nil {
		a.files = config.Of(dirs)
	}
	return a.files
}

// Width returns the width of the terminal for results, or 0 if there is none.
func (a *App) Width() int {
	columns, _ := terminal.Size(a.Env.Stdout)
	return columns
}

// FormatFlag returns --format for a command with additional formats. It replaces the global flag, so names
// must contain all useful formats. json applies to errors as well.
func (a *App) FormatFlag(names []string, otherwise string) ucli.Flag {
	f := ucli.StringFlag{Name: "format", Usage: fmt.Sprintf("`FORMAT` output format: %s (default %s)", strings.Join(names, ", "), otherwise)}
	return term.Checked(f, func(_, name string) error {
		if f, err := render.ParseFormat(name); err == nil && slices.Contains(names, string(f)) {
			a.Flags.Format = string(f)
			return nil
		}
		if slices.Contains(names, name) {
			return nil
		}
		return cmdline.UsageError(fmt.Sprintf("unknown format %q", name), cmdline.Choices("--format ", name, names)...)
	})
}

// OwnFormat returns the value of [App.FormatFlag], or "".
func (a *App) OwnFormat(c *ucli.Context) string { return cmp.Or(a.Flags.Format, c.String("format")) }

// AskYes asks a question on the terminal and reports whether the answer is yes.
func (a *App) AskYes(ctx context.Context, question string) (bool, error) {
	reply, err := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, plaintext.Line(question)+" [y/N] ")
	reply = strings.ToLower(reply)
	return reply == "y" || reply == "yes", err
}

// Confirm returns nil if the user answers yes. script is the hint for a script: how to skip the question.
func (a *App) Confirm(ctx context.Context, question, script string) error {
	if !terminal.Is(a.Env.Stdin) {
		return cmdline.UsageError("stdin is not a terminal, so there is no answer to: "+question, script)
	}
	switch yes, err := a.AskYes(ctx, question); {
	case err != nil:
		return err
	case !yes:
		return &protocol.Error{Code: protocol.CodeFailed, Message: "cancelled"}
	}
	return nil
}

// Leaf returns a command that does something; see [cmdline.Leaf]. It prints the hints last. It rejects empty
// flag values, which usually come from unset variables and would change what the command does.
func (a *App) Leaf(c ucli.Command, run func(ctx context.Context, c *ucli.Context) error) *ucli.Command {
	flags := c.Flags
	return cmdline.Leaf(c, func(ctx context.Context, cc *ucli.Context) error {
		for _, f := range flags {
			name := f.Names()[0]
			if _, text := f.(*ucli.StringFlag); text && cc.IsSet(name) && cc.String(name) == "" && name != "prompt" {
				return cmdline.UsageError("flag --"+name+" is empty", cc.Command.HelpName+" --help")
			}
		}
		err := run(ctx, cc)
		for _, hint := range a.hints {
			a.Messagef("hint: %s", hint)
		}
		a.hints = nil
		return err
	})
}

// Group returns a command that only contains others.
func (a *App) Group(c ucli.Command) *ucli.Command { return cmdline.Group(a.Env.Stderr, c) }

// Messagef prints a message on stderr, on a terminal above the progress lines.
func (a *App) Messagef(format string, args ...any) {
	if !a.Flags.Quiet {
		a.message(format, args...)
	}
}

// Warnf prints a warning, as Messagef but even with -q.
func (a *App) Warnf(format string, args ...any) { a.message("uwf: warning: "+format, args...) }

func (a *App) message(format string, args ...any) {
	text := plaintext.Indent(fmt.Sprintf(format, args...))
	if v := a.shown.Load(); v != nil && v.live && (v.w == a.Env.Stderr || a.sameScreen()) {
		v.note(text)
		return
	}
	fmt.Fprintln(a.Env.Stderr, text)
}

// Hint adds a hint, usually the next command to type, which [App.Leaf] prints after the result.
func (a *App) Hint(format string, args ...any) {
	a.hints = append(a.hints, fmt.Sprintf(format, args...))
}

// EndsAs sets the exit status of commands after which a thread has stopped: scripts must notice that a person
// is needed, or that the thread cannot continue.
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

// OrStdin returns value, or reads stdin for "-".
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

// YesFlag returns --yes for a command that asks with [App.Agree].
func YesFlag() *ucli.BoolFlag {
	return &ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "confirm without prompting"}
}

// Agree shows the commands of a workflow or thread, asks whether they may run, and calls confirm. With --yes
// it does not ask.
func (a *App) Agree(ctx context.Context, c *ucli.Context, what string, commands []string, confirm func() error) error {
	if !c.Bool("yes") {
		a.Messagef("the commands of %s:\n  %s", plaintext.Line(what), plaintext.Indent(strings.Join(commands, "\n")))
		unasked := c.Command.HelpName + " " + c.Args().First() + " --yes"
		if err := a.Confirm(ctx, "Allow these commands, now and later?", unasked); err != nil {
			return err
		}
	}
	return confirm()
}

// AskTrust asks on the terminal whether commands may run; without a terminal the answer is no.
func (a *App) AskTrust(ctx context.Context, u *engine.UntrustedError) bool {
	if !terminal.Is(a.Env.Stdin) || !terminal.Is(a.Env.Stderr) {
		return false
	}
	a.Messagef("%s", plaintext.Indent(u.Error()))
	yes, err := a.AskYes(ctx, "Allow these commands, now and later?")
	return yes && err == nil
}

// PrintAgreed prints the result of [App.Agree].
func PrintAgreed(w *term.Page, what string, commands []string) {
	w.Printf("%s\n", strings.Join(append([]string{"confirmed: " + what}, commands...), "\n  "))
}

// defaultQuota is the default number of characters to read.
const defaultQuota = 4000

// QuotaFlag returns --quota; see [term.NumberOf].
func QuotaFlag() ucli.Flag {
	f := ucli.StringFlag{Name: "quota", Usage: "`N` maximum number of characters; older text is cut first", Value: strconv.Itoa(defaultQuota)}
	return term.Checked(f, func(_, text string) error {
		if _, err := term.Positive(text); err != nil { // same wording as the original
			return cmdline.UsageError("invalid --quota: must be a positive integer, got: "+text, fmt.Sprintf("--quota %d", defaultQuota))
		}
		return nil
	})
}

// Reader returns a reader for a thread, in its state at the start of the step in flight, if there is one.
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

// Quoting returns how to quote agents' texts: for a model if an agent runs this command in a step, else for people.
func (a *App) Quoting() transcript.Quoting {
	during := a.Env.Get(protocol.EnvRunDir) + a.Env.Get(protocol.EnvStartedFor)
	return transcript.Quoting(during != "")
}

// Colour returns a colour if the stream supports colours, or else none.
func (a *App) Colour(w io.Writer, in terminal.Sequence) terminal.Sequence {
	if cmdline.Colours(a.Env, w) {
		return in
	}
	return terminal.Plain
}

// System returns this machine's sandbox support, and why namespaces don't work.
func (a *App) System() (config.System, box.Diagnosis) {
	a.diagnose.Do(func() { a.diagnosis = box.Diagnose(a.Env.Exe) })
	return dryrun.SystemOf(a.diagnosis), a.diagnosis
}
