// Package cli is the command line of uwf: it parses arguments, calls the engine or the store, and prints the
// results. stdout carries only results; messages go to stderr. Hints with the next command to type are added
// here, or come from package hints by the reason of an error, and nowhere below.
//
// The commands are in sibling packages, one per noun: threads, workflows, steps, bundles, settings. root
// lists them; package app contains what they share.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/bundles"
	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/cmd/uwf/internal/remotes"
	"github.com/united-workforce/uwf/cmd/uwf/internal/settings"
	"github.com/united-workforce/uwf/cmd/uwf/internal/steps"
	"github.com/united-workforce/uwf/cmd/uwf/internal/threads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/render"
)

// Main runs one command line and returns its exit status.
func Main(ctx context.Context, e env.Env) int {
	ctx, stop := proc.WithSignals(ctx)
	defer stop()
	a := commands{&app.App{Env: e}}
	ctx = durable.WithWaiting(ctx, a.waiting)
	return proc.UntilSignal(ctx, a.patience, func() int { return a.main(ctx) })
}

// patience returns how long a command may run after a signal. An agent is asked to stop first, and its
// finished work is kept.
func (a commands) patience() time.Duration {
	if a.Steps.Load() {
		return time.Minute
	}
	return time.Second
}

// main runs the command line and returns its exit status.
func (a commands) main(ctx context.Context) int {
	defer a.collectLater()
	e := a.Env
	if err := a.run(ctx); err != nil {
		coded := afterSignal(ctx, err)
		a.Explain(ctx, coded)
		a.MissingStore(coded)
		a.Hide(coded)
		cmdline.Report(e.Stderr, "uwf", coded, a.Flags.Format == string(render.JSON))
		return coded.Code.ExitCode()
	}
	if a.CAS != nil && a.CAS.Status != "" {
		return a.CAS.Status.ExitCode()
	}
	if a.Exit != 0 {
		return a.Exit
	}
	return a.Status.ExitCode()
}

// collectLater starts a collection in the background if one is due, as git does. It isn't worth an error: the next
// command tries again.
func (a commands) collectLater() {
	dirs, err := a.Dirs()
	if a.FS == nil || err != nil || !a.FS.CompactionDue(a.Env.Now()) {
		return
	}
	if self, err := os.Executable(); err == nil {
		_ = proc.StartDetached(dirs.Home, a.Env.Environ, self, "--home", dirs.Home, "--store", dirs.Store, "cas", "gc", "--auto")
	}
}

// afterSignal returns a command's error. After a signal, the exit status is always that of the signal,
// whatever failed because of it.
func afterSignal(ctx context.Context, err error) *protocol.Error {
	var signal *engine.SignalError
	if !errors.As(context.Cause(ctx), &signal) {
		return app.Classify(err)
	}
	if errors.Is(err, context.Canceled) {
		err = signal // the error is a consequence of the interruption
	}
	coded := *app.Classify(err)
	coded.Code = signal.Code()
	return &coded
}

// waiting prints what a command waits for, once per lock.
func (a commands) waiting(lock string) {
	if !a.First(lock) {
		return
	}
	holders := proc.Holders(lock)
	if who, err := durable.ReadHolder(lock); err == nil && len(holders) == 0 {
		holders = []int{who.Pid}
	}
	by := "another process"
	if len(holders) > 0 {
		by = "pid " + strings.Trim(strings.ReplaceAll(fmt.Sprint(holders), " ", ", "), "[]")
	}
	a.Messagef("uwf: waiting for %s, which is locked by %s", lock, by)
}

func (a commands) run(ctx context.Context) error {
	if call, ok := host.CallOf(a.Env.Args); ok {
		a.Flags = app.Globals{Home: call.Home, Store: call.Store, Debug: call.Debug}
		e, err := a.Engine(ctx, a.Progress())
		if err != nil {
			return err
		}
		return host.Run(ctx, e, call, a.Env)
	}
	a.Flags.Format = cmdline.FormatIn(a.Env.Args) // in case they cannot be read
	return cmdline.Run(ctx, a.rootFor(a.Env.Args), a.Env.Args)
}

// readGlobals runs before every command.
func (a commands) readGlobals(c *ucli.Context) error {
	a.Flags = app.Globals{
		Format: c.String("format"), Home: c.String("home"),
		Store: c.String("store"), Quiet: c.Bool("quiet"), Debug: c.Bool("debug"),
	}
	if c.Bool("json") {
		if a.Flags.Format != "" && a.Flags.Format != string(render.JSON) {
			return cmdline.UsageError("--json and --format "+a.Flags.Format+" cannot be used together", "--json")
		}
		a.Flags.Format = string(render.JSON)
	}
	if a.Flags.Format == "" {
		return nil
	}
	if _, err := render.ParseFormat(a.Flags.Format); err != nil {
		return cmdline.UsageError(err.Error(), cmdline.Choices("--format ", a.Flags.Format, render.Formats())...)
	}
	return nil
}

// commands contains the commands of this package, and the root.
type commands struct{ *app.App }

// rootFor returns the command tree for a command line: the branches that it names if it names a command, which
// takes less time, and otherwise the whole tree, which help and hints need.
func (a commands) rootFor(args []string) *ucli.App {
	if len(args) > 0 {
		if root := a.root(args...); cmdline.NamesCommand(root, args) {
			return root
		}
	}
	return a.root()
}

// root returns the command tree, in the order of help, or the branches whose names include a word of the command line.
func (a commands) root(words ...string) *ucli.App {
	thread, remote, set := threads.Commands{App: a.App}, remotes.Commands{App: a.App}, settings.Commands{App: a.App}
	on := cmdline.NewBranch
	root := &ucli.App{
		Name:  "uwf",
		Usage: "run workflows of AI agents, one verifiable step at a time",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "format", Usage: "`FORMAT` output format: json, yaml or text (default text on a terminal, else json)"},
			&ucli.BoolFlag{Name: "json", Usage: "same as --format json"},
			&ucli.StringFlag{Name: "home", Usage: "`DIR` directory for threads, workflows and config (default $UWF_HOME, else ~/.uwf)"},
			&ucli.StringFlag{Name: "store", Aliases: []string{"ocas-home"}, Usage: "`DIR` directory of the node store (default $OCAS_HOME, else cas in the home)"},
			&ucli.BoolFlag{Name: "debug", Usage: "print each decision of the engine and its reasons to stderr"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "suppress progress and hints"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print help"},
		},
		Commands: slices.Concat(
			cmdline.Branches(words, cmdline.Common, on("setup", set.Setup),
				on("workflow wf", workflows.Commands{App: a.App}.Command), on("run", thread.Run),
				on("thread", func() *ucli.Command { return thread.Command(words...) }),
				on("inbox", a.inboxCommand), on("web", a.webCommand)),
			cmdline.Branches(words, "Run", on("run-due", thread.Tick)),
			cmdline.Branches(words, "Share", on("remote", a.remoteCommand), on("push", remote.Push),
				on("pull", remote.Pull), on("fetch", remote.Fetch), on("verify", bundles.Commands{App: a.App}.Verify)),
			cmdline.Branches(words, "Inspect", on("step", a.stepCommand), on("stats", a.statsCommand),
				on("log", a.logCommand)),
			cmdline.Branches(words, "Maintain", on("doctor", set.Doctor), on("cas", a.casCommand),
				on("import-original", a.importOriginalCommand)),
			cmdline.Branches(words, "Manage", on("config", set.Config), on("schema", a.schemaCommand),
				on("guide skill prompt", a.guideCommand), on("completion", a.completionCommand),
				on("version", a.versionCommand)),
		),
		HideVersion:               true,
		HideHelp:                  len(words) > 0, // the help command would hide it otherwise
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Writer:                    a.Env.Stdout,
		ErrWriter:                 a.Env.Stderr,
		Before:                    a.readGlobals,
		ExitErrHandler:            func(*ucli.Context, error) {}, // Main maps errors to exit statuses
		OnUsageError:              cmdline.OnUsageError,
	}
	if len(words) == 0 {
		root.Description = "Help topics: " + strings.Join(guide.Topics(), ", ") + ". To read one: uwf help TOPIC.\n\n" +
			"   uwf setup                             # choose an agent\n" +
			"   uwf workflow new hello                # create hello.yaml\n" +
			"   uwf run ./hello.yaml -p 'Say hello'   # run it\n" +
			"   uwf thread resume @ -p 'Yes'          # answer a question, or continue\n" +
			"   uwf thread read @                     # read all of it"
		root.Commands = append(root.Commands, cmdline.Under("Manage", a.completeCommand(root), a.helpCommand(root))...)
		cmdline.Describe(root.Commands, guide.Commands)
	}
	a.withPager(root.Commands, "")
	a.WithCreators(root.Commands, "")
	cmdline.PlainDefaults(root.Flags)
	root.Action = func(c *ucli.Context) error {
		if c.Bool("version") {
			_, err := fmt.Fprintln(a.Env.Stdout, "uwf", cmdline.Version())
			return err
		}
		if c.Args().Len() == 0 { // an error, for scripts that forgot a word
			a.Status = protocol.CodeUsage
			return cmdline.Help(a.Env.Stderr, root, nil)
		}
		return cmdline.UnknownCommand(c, a.Env.Stderr, "uwf", root.Commands)
	}
	return root
}

func (a commands) versionCommand() *ucli.Command {
	return a.Leaf(ucli.Command{Name: "version", Usage: "print the version"}, func(context.Context, *ucli.Context) error {
		result := map[string]string{"version": cmdline.Version()}
		return a.Printf(result, "uwf %s\n", cmdline.Version())
	})
}

// helpCommand returns help on commands and general topics.
func (a commands) helpCommand(root *ucli.App) *ucli.Command {
	help := cmdline.HelpCommand(root)
	help.ArgsUsage = "[topic|command…]"
	help.Description = "Topics: " + strings.Join(guide.Topics(), ", ") + "."
	ofCommands := help.Action
	help.Action = func(c *ucli.Context) error {
		if text, ok := guide.Topic(c.Args().First()); ok && c.Args().Len() == 1 {
			_, err := io.WriteString(a.Env.Stdout, text)
			return err
		}
		return ofCommands(c)
	}
	return help
}

// casCommand returns the store's commands, as in the program ocas.
func (a commands) casCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "cas", Usage: "inspect, check and clean the node store", Subcommands: a.StoreCLI().Commands(),
	})
}

// stepCommand returns the commands about a single step, the original's later names for thread commands, and
// the plumbing for agents in other languages.
func (a commands) stepCommand() *ucli.Command {
	list := threads.Commands{App: a.App}.History()
	list.Name, list.Aliases, list.Hidden = "list", []string{"ls"}, true
	fork := threads.Commands{App: a.App}.Fork()
	fork.Hidden = true
	step := steps.Commands{App: a.App}
	return a.Group(ucli.Command{
		Name: "step", Usage: "inspect a step; commands for agents in any language",
		Subcommands: slices.Concat(
			cmdline.Under("Inspect", a.Reads(step.Show()), a.Reads(step.Read()), a.Reads(step.Turns()), a.Reads(step.Diff()),
				a.Reads(list), fork),
			cmdline.Under("For agents", step.Prompt(), step.Turn(), step.Put(), step.Extract()),
		),
	})
}

func (a commands) guideCommand() *ucli.Command {
	c := ucli.Command{
		Name: "guide", Aliases: []string{"skill", "prompt"}, Usage: "print guides for users and agents",
		Subcommands: []*ucli.Command{a.Leaf(ucli.Command{
			Name: "list", Aliases: []string{"ls"}, Usage: "list the guides",
		}, a.guideList)},
	}
	for _, text := range guide.All() {
		c.Subcommands = append(c.Subcommands, a.Leaf(ucli.Command{
			Name: text.Name, Aliases: text.Aliases, Usage: text.About,
		}, func(context.Context, *ucli.Context) error {
			_, err := io.WriteString(a.Env.Stdout, text.Markdown)
			return err
		}))
	}
	return a.Group(c)
}

func (a commands) guideList(context.Context, *ucli.Context) error {
	for _, text := range guide.All() {
		if _, err := fmt.Fprintln(a.Env.Stdout, text.Name); err != nil {
			return err
		}
	}
	return nil
}
