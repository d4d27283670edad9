// Package cli is the command line of uwf: it reads arguments, calls the engine
// or the store, and prints what they answer. stdout carries results only; talk
// goes to stderr. Hints, the next command to type, are attached here, and by the
// engine where it knows the thread; nowhere below.
//
// One file per noun: workflow.go, thread*.go, step.go, schema.go. root.go lists
// the commands.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Main runs one command line and returns its exit status.
func Main(ctx context.Context, e env.Env) int {
	ctx, stop := proc.WithSignals(ctx)
	defer stop()
	a := &app{env: e}
	ctx = durable.WithWaiting(ctx, a.waiting)
	return proc.UntilSignal(ctx, a.patience, func() int { return a.main(ctx) })
}

// patience is how long a command may go on after a signal. An agent is asked to
// stop first, and what it finishes is kept.
func (a *app) patience() time.Duration {
	if a.steps.Load() {
		return time.Minute
	}
	return time.Second
}

// main runs the command line and returns its exit status.
func (a *app) main(ctx context.Context) int {
	e := a.env
	if err := a.run(ctx); err != nil {
		coded := afterSignal(ctx, err)
		a.missingStore(coded)
		a.hide(coded)
		cmdline.Report(e.Stderr, "uwf", coded, a.format(nil) == render.JSON && !a.textErrors)
		return coded.Code.ExitCode()
	}
	if a.cas.Status != "" {
		return a.cas.Status.ExitCode()
	}
	if a.exit != 0 {
		return a.exit
	}
	return a.status.ExitCode()
}

// afterSignal is the error of a command, given its context. One that a signal has
// ended has the status of the signal, whatever went wrong because of it.
func afterSignal(ctx context.Context, err error) *protocol.Error {
	var signal *engine.SignalError
	if !errors.As(context.Cause(ctx), &signal) {
		return classify(err)
	}
	if errors.Is(err, context.Canceled) {
		err = signal // whatever was in the middle of something
	}
	coded := *classify(err)
	coded.Code = signal.Code()
	return &coded
}

// waiting tells a person what a command waits for.
func (a *app) waiting(lock string) {
	holders := proc.Holders(lock)
	if who, err := durable.ReadHolder(lock); err == nil && len(holders) == 0 {
		holders = []int{who.Pid}
	}
	by := "another process"
	if len(holders) > 0 {
		by = "pid " + strings.Trim(strings.ReplaceAll(fmt.Sprint(holders), " ", ", "), "[]")
	}
	a.say("uwf: waiting for %s, which is locked by %s", lock, by)
}

// app is one invocation of the program.
type app struct {
	env   env.Env
	flags globals
	// status is the exit status of a command that did its work but ended in a
	// state that scripts must see, such as suspended.
	status protocol.Code
	// exit is the exit status of a program that was run in this one's place.
	exit int
	// textErrors: errors are text only, because they are meant for a model.
	textErrors bool
	projects   sync.Map    // whose settings were told
	steps      atomic.Bool // the command runs agents, or looks at what would run
	creates    bool        // the command makes a home or store that is not there
	takes, yes bool        // a workflow from elsewhere is to be run, and is taken without a question
	warned     sync.Map    // warnings that were told
	exposed    sync.Once   // warns of keys that others can read
	unheld     sync.Once   // whether commands are not confined is said
	catalog    *catalog.Catalog
	fs         *fsstore.Store
	heads      *fileheads.Heads
	cas        *ocascli.CLI // the commands of the store
	bundle     *bundled     // in the place of home and store; nil: none
}

// globals are the flags that every command knows.
type globals struct {
	format string
	home   string
	store  string
	quiet  bool
}

func (a *app) run(ctx context.Context) error {
	root := a.root()
	args, err := cmdline.Reorder(root, a.env.Args)
	if err != nil {
		a.flags.format = cmdline.FormatIn(a.env.Args)
		return err
	}
	return root.RunContext(ctx, append([]string{"uwf"}, args...))
}

// readGlobals runs before every command.
func (a *app) readGlobals(c *ucli.Context) error {
	a.flags = globals{
		format: c.String("format"), home: c.String("home"),
		store: c.String("ocas-home"), quiet: c.Bool("quiet"),
	}
	if c.Bool("json") {
		if a.flags.format != "" && a.flags.format != string(render.JSON) {
			return cmdline.UsageError("--json and --format "+a.flags.format+" exclude each other", "--json")
		}
		a.flags.format = string(render.JSON)
	}
	if a.flags.format == "" {
		return nil
	}
	if _, err := render.ParseFormat(a.flags.format); err != nil {
		if near := suggest.Nearest(a.flags.format, render.Formats(), 1); len(near) > 0 {
			return cmdline.UsageError(err.Error(), "did you mean --format "+near[0]+"?")
		}
		return cmdline.UsageError(err.Error())
	}
	return nil
}

// format is the format of results: what was asked for, else the command's own,
// else text on a terminal and JSON for a program.
func (a *app) format(own *render.Format) render.Format {
	if f, err := render.ParseFormat(a.flags.format); err == nil {
		return f
	}
	if own != nil {
		return *own
	}
	if a.onTerminal() {
		return render.Text
	}
	return render.JSON
}

// print writes a command's result.
func (a *app) print(value any, text func(io.Writer) error) error {
	return render.Print(a.env.Stdout, a.format(nil), value, text)
}

// dirs are the directories in force. Errors: see [app.checkHome].
func (a *app) dirs() (home.Dirs, error) {
	if a.bundle != nil {
		return a.bundle.dirs(), nil
	}
	dirs, err := home.Find(a.env, a.flags.home, a.flags.store)
	if err != nil {
		return dirs, err
	}
	return dirs, a.checkHome(dirs)
}

// store opens the node store; it need not exist.
func (a *app) store(ctx context.Context) (cas.Store, error) {
	if a.bundle != nil {
		return a.bundle.file, nil
	}
	if a.fs != nil {
		return a.fs, nil
	}
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	s, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home})
	if err != nil {
		return nil, ocascli.StoreError(err, casProgram)
	}
	if err := a.checkStore(dirs, s.Exists()); err != nil {
		return nil, err
	}
	a.fs = s
	return s, nil
}

// holdStore keeps the collector away while nodes are put that the index does not
// name yet.
func (a *app) holdStore(ctx context.Context) (release func(), err error) {
	s, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	done, err := cas.Hold(ctx, s)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // the end of the process gives it back, too
}

func (a *app) index() (*fileheads.Heads, error) {
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	if a.heads == nil {
		// Beside the store of a newer uwf the index, too, is not ours to touch.
		if a.bundle == nil {
			if err := fsstore.Readable(dirs.Store); err != nil {
				return nil, ocascli.StoreError(err, casProgram)
			}
		}
		a.heads = fileheads.Open(dirs.Home, durable.OS())
	}
	return a.heads, nil
}

// engine puts the parts together. The config is read only when a step needs it.
func (a *app) engine(ctx context.Context, p engine.Progress) (*engine.Engine, error) {
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	sweepEdit(dirs)
	s, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	x, err := a.index()
	if err != nil {
		return nil, err
	}
	with := &engine.Engine{
		Dirs: dirs, FS: durable.OS(), Store: s, Heads: x, Progress: p,
		Warn: func(text string) { a.warnOnce(p, plaintext.Line(text)) },
		PutBack: func() (string, error) {
			changed, err := offlimits.Recover(dirs.Guard())
			return changed.String(), err
		},
	}
	with.Run = a.runner(with)
	if err := with.Configure(a.env); err != nil {
		return nil, err
	}
	with.Loaded = func(project string, err error) {
		a.steps.Store(true)
		if err != nil {
			return
		}
		a.exposed.Do(func() { a.warnExposed(dirs) })
		if _, said := a.projects.LoadOrStore(project, true); !said && project != "" {
			a.say("uwf: with the settings of %s", plaintext.Line(a.workflows().Shown(project)))
		}
	}
	a.keepDiary(with)
	return with, nil
}

// warnOnce tells a warning, the first time that it is given: each step of an agent gives
// its own again. On a terminal it takes the place of the line that counts.
func (a *app) warnOnce(p engine.Progress, text string) {
	if _, told := a.warned.LoadOrStore(text, true); told {
		return
	}
	if v, ok := p.(*display); ok {
		v.note("uwf: warning: " + text)
		return
	}
	a.say("uwf: warning: %s", text)
}

// warnExposed warns of keys that others can read.
func (a *app) warnExposed(dirs home.Dirs) {
	for _, warning := range config.Exposed(dirs.Config(), dirs.DotEnv()) {
		a.say("uwf: warning: %s", warning)
	}
}
