package main

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/render"
)

// program is one invocation of ocas.
type program struct {
	env    env.Env
	format string // value of --format
	dirs   func() (home.Dirs, error)
}

// run runs one command line and returns its exit status.
func run(ctx context.Context, e env.Env) int {
	p := &program{env: e, dirs: func() (home.Dirs, error) { return home.Find(e, "", "") }}
	store := &ocascli.CLI{
		Env: e, Program: "ocas", Format: p.resultFormat,
		Dirs: func() (home.Dirs, error) { return p.dirs() },
	}
	err := p.command(ctx, store)
	if err == nil {
		return store.Status.ExitCode()
	}
	coded := ocascli.Classify(err, "ocas")
	var signal *proc.SignalError
	if errors.As(context.Cause(ctx), &signal) {
		ended := *coded
		if ended.Code = signal.Code(); errors.Is(err, context.Canceled) {
			ended.Message = signal.Error()
		}
		coded = &ended
	}
	cmdline.Report(e.Stderr, "ocas", coded, p.format == string(render.JSON))
	return coded.Code.ExitCode()
}

func (p *program) command(ctx context.Context, store *ocascli.CLI) error {
	p.format = cmdline.FormatIn(p.env.Args) // in case they cannot be read
	return cmdline.Run(ctx, p.app(store), p.env.Args)
}

func (p *program) app(store *ocascli.CLI) *ucli.App {
	app := &ucli.App{
		Name: "ocas", Usage: "manage the content-addressed store of uwf", Version: cmdline.Version(),
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "format", Usage: "`FORMAT` output format: json, yaml or text (default text on a terminal, else json)"},
			&ucli.StringFlag{Name: "store", Usage: "`DIR` directory of the node store (default $OCAS_HOME, else cas in the home)"},
			&ucli.StringFlag{Name: "home", Usage: "`DIR` home directory of uwf (default $UWF_HOME, else ~/.uwf)"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print help"},
		},
		Commands:    store.Commands(),
		HideVersion: true, HideHelpCommand: true, DisableSliceFlagSeparator: true,
		Writer: p.env.Stdout, ErrWriter: p.env.Stderr,
		Before:         p.readGlobals,
		ExitErrHandler: func(*ucli.Context, error) {}, // run maps errors to exit statuses
		OnUsageError:   cmdline.OnUsageError,
	}
	app.Commands = append(app.Commands, cmdline.HelpCommand(app))
	cmdline.PlainDefaults(app.Flags)
	app.Action = func(c *ucli.Context) error {
		if c.Bool("version") {
			_, err := fmt.Fprintln(p.env.Stdout, "ocas", cmdline.Version())
			return err
		}
		return cmdline.UnknownCommand(c, p.env.Stderr, "ocas", app.Commands)
	}
	return app
}

// readGlobals runs before every command.
func (p *program) readGlobals(c *ucli.Context) error {
	p.format = c.String("format")
	dirs, err := home.Find(p.env, c.String("home"), c.String("store"))
	p.dirs = func() (home.Dirs, error) { return dirs, err }
	return cmdline.CheckFormat(p.format)
}

// resultFormat returns the format for results.
func (p *program) resultFormat() render.Format { return cmdline.Format(p.format, p.env.Stdout) }
