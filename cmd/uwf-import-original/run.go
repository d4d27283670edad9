package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/convert"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/source"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/render"
)

const program = "uwf-import-original"

// run runs one command line and returns its exit status.
func run(ctx context.Context, e env.Env) int {
	i := &invocation{env: e}
	app := i.command()
	err := cmdline.Run(ctx, app, e.Args)
	if err == nil {
		return i.status.ExitCode()
	}
	coded := classify(err)
	cmdline.Report(e.Stderr, program, coded, i.format == string(render.JSON))
	return coded.Code.ExitCode()
}

type invocation struct {
	env    env.Env
	format string
	status protocol.Code
}

func (i *invocation) command() *ucli.App {
	app := &ucli.App{
		Name: program, Usage: "import workflows, threads and config of the TypeScript uwf", Version: cmdline.Version(),
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "ocas", Usage: "`DIR` nodes and variables of that version (default ~/.ocas)"},
			&ucli.StringFlag{Name: "uwf", Usage: "`DIR` config and older index of that version (default ~/.uwf)"},
			&ucli.StringFlag{Name: "home", Usage: "`DIR` directory to import into (default $UWF_HOME, else ~/.uwf)"},
			&ucli.StringFlag{Name: "store", Aliases: []string{"ocas-home"}, Usage: "`DIR` node store to import into (default $OCAS_HOME, else cas in the home)"},
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only print what would be imported"},
			&ucli.StringFlag{Name: "format", Usage: "`FORMAT` output format: json, yaml or text (default text on a terminal, else json)"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print help"},
		},
		HideVersion: true, HideHelp: true,
		Writer: i.env.Stdout, ErrWriter: i.env.Stderr,
		ExitErrHandler: func(*ucli.Context, error) {}, // run maps errors to exit statuses
		OnUsageError:   cmdline.OnUsageError,
		Action:         i.action,
	}
	cmdline.PlainDefaults(app.Flags)
	return app
}

func (i *invocation) action(c *ucli.Context) error {
	i.format = c.String("format")
	if err := cmdline.CheckFormat(i.format); err != nil {
		return err
	}
	switch {
	case c.Bool("version"):
		_, err := fmt.Fprintln(i.env.Stdout, program, cmdline.Version())
		return err
	case c.Args().Len() > 0:
		return cmdline.UsageError("unexpected argument: "+c.Args().First(), program+" --help")
	}
	from, err := i.original(c)
	if err != nil {
		return err
	}
	dirs, err := home.Find(i.env, c.String("home"), c.String("store"))
	if err != nil {
		return err
	}
	s, err := source.Open(c.Context, from)
	if err != nil {
		return err
	}
	report, err := convert.Run(c.Context, s, convert.Options{Dirs: dirs, DryRun: c.Bool("dry-run"), Env: i.env})
	if err != nil {
		return err
	}
	if !report.Complete() {
		i.status = protocol.CodeCorrupt
	}
	return render.Print(i.env.Stdout, i.resultFormat(), report, text(report))
}

// original returns the directories of the original. Versions before ~/.ocas kept their nodes in the home.
func (i *invocation) original(c *ucli.Context) (source.Dirs, error) {
	dirs, err := home.Find(i.env, cmp.Or(c.String("uwf"), filepath.Join("~", ".uwf")), cmp.Or(c.String("ocas"), filepath.Join("~", ".ocas")))
	if err != nil {
		return source.Dirs{}, err
	}
	from := source.Dirs{Store: dirs.Store, Home: dirs.Home}
	if c.String("ocas") == "" {
		if _, err := os.Stat(from.Store); errors.Is(err, os.ErrNotExist) {
			from.Store = filepath.Join(from.Home, "cas")
		}
	}
	return from, nil
}

// classify assigns a code to every error.
func classify(err error) *protocol.Error {
	var coded *protocol.Error
	if errors.As(err, &coded) {
		return coded
	}
	out := &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	var corrupt *cas.CorruptError
	switch {
	case errors.Is(err, context.Canceled):
		out.Code, out.Message = protocol.CodeInterrupted, "interrupted; to continue, run it again"
	case errors.Is(err, source.ErrNone):
		out.Code, out.Hints = protocol.CodeNotFound, []string{"--ocas DIR --uwf DIR"}
	case errors.As(err, &corrupt), errors.Is(err, cas.ErrNotFound):
		out.Code, out.Hints = protocol.CodeCorrupt, []string{"uwf cas fsck"}
	}
	return out
}

// resultFormat returns the format for results.
func (i *invocation) resultFormat() render.Format { return cmdline.Format(i.format, i.env.Stdout) }
