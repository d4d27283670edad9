package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/render"
)

const program = "uwf-temporal"

// command is the invocation of a command line.
type command struct {
	env    env.Env
	format string
	mu     sync.Mutex // protects lines on stdout
}

// run runs a command line and returns its exit status.
func run(ctx context.Context, e env.Env) int {
	cmd := &command{env: e}
	app := &ucli.App{
		Name: program, Usage: "step the threads of a remote on many machines", Version: cmdline.Version(),
		UsageText: program + " worker|run|stop|retry|list [--config FILE]",
		Flags:     []ucli.Flag{&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}},
		Commands: []*ucli.Command{
			cmd.leaf("worker", "make steps until it is stopped; a signal lets those in flight end", "", cmd.worker,
				&ucli.StringFlag{Name: "queue", Usage: "make steps of task queue `NAME` (default: that of the config)"},
				&ucli.IntFlag{Name: "max-concurrent-steps", Usage: "run up to `N` steps at once (default: maxConcurrentSteps " +
					"of the config)"},
				&ucli.StringFlag{Name: "listen", Usage: "answer GET /healthz at `HOST:PORT` (default: that of the config, else " +
					"nowhere)"}),
			cmd.leaf("run", "start a thread at the remote and let workers step it to its end", "[<workflow>]", cmd.start,
				&ucli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "`TEXT` of the task; @FILE reads it from a file"},
				&ucli.StringSliceFlag{Name: "var", Usage: "an input of the workflow: `NAME=VALUE`"},
				&ucli.StringFlag{Name: "title", Usage: "`TEXT` by which lists show the thread"},
				&ucli.StringFlag{Name: "workspace", Usage: "how its files are kept where it is started: here, worktree or none " +
					"(default: as the config says)"},
				&ucli.StringFlag{Name: "thread", Usage: "the thread `ID` that is at the remote already, instead of a new one"},
				&ucli.BoolFlag{Name: "wait", Usage: "wait until it is at its end"}),
			cmd.leaf("stop", "stop working on a thread; it stays as it is", "<thread>", cmd.stop),
			cmd.leaf("retry", "continue threads that have failed", "", cmd.retry,
				&ucli.BoolFlag{Name: "failed", Usage: "those whose workflow has failed and that nobody works on"},
				&ucli.StringFlag{Name: "since", Usage: "those that failed within `DURATION`, such as 1h"}),
			cmd.leaf("list", "show which threads are worked on, and by whom", "", cmd.list,
				&ucli.BoolFlag{Name: "all", Usage: "also those that nobody works on any more"},
				&ucli.IntFlag{Name: "limit", Usage: "at most `N`", Value: defaultLimit}),
		},
		HideVersion: true,
		Writer:      e.Stdout, ErrWriter: e.Stderr,
		ExitErrHandler: func(*ucli.Context, error) {}, // run maps errors to exit statuses
		OnUsageError:   cmdline.OnUsageError,
	}
	app.Action = func(c *ucli.Context) error {
		switch {
		case c.Bool("version"):
			_, err := fmt.Fprintln(e.Stdout, program, cmdline.Version())
			return err
		case c.Args().Len() > 0:
			return cmdline.UsageError("there is no command "+c.Args().First(), program+" --help")
		}
		return cmdline.Help(e.Stdout, app, nil)
	}
	args, err := cmdline.Reorder(app, e.Args)
	if err == nil {
		err = cmdline.Run(ctx, app, args)
	}
	if err == nil {
		return 0
	}
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		coded = &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	}
	coded.Hints = hints.All("", coded)
	cmdline.Report(e.Stderr, program, coded, cmd.format == string(render.JSON))
	return coded.Code.ExitCode()
}

// leaf returns a command with the common flags.
func (cmd *command) leaf(name, usage, args string, run func(*ucli.Context, config) error,
	flags ...ucli.Flag) *ucli.Command {
	flags = append(flags,
		&ucli.StringFlag{Name: "config", Usage: "`FILE` with address, remote and more (default: temporal.yaml in the " +
			"home, if it is there)"},
		&ucli.StringFlag{Name: "remote", Usage: "`NAME` of the remote (default: that of the config)"},
		&ucli.BoolFlag{Name: "json", Usage: "the same as --format json"},
		&ucli.StringFlag{Name: "format", Usage: "how results are printed: json, yaml or text (default: text on a " +
			"terminal, else json)"})
	cmdline.PlainDefaults(flags)
	return &ucli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Flags: flags, OnUsageError: cmdline.OnUsageError,
		Action: func(c *ucli.Context) error {
			if cmd.format = c.String("format"); c.Bool("json") {
				cmd.format = string(render.JSON)
			}
			if err := cmdline.CheckFormat(cmd.format); err != nil {
				return err
			}
			most := 0
			if args != "" {
				most = 1
			}
			if c.Args().Len() > most {
				return cmdline.UsageError("unexpected argument: "+c.Args().Get(most), program+" "+name+" --help")
			}
			conf, err := cmd.config(c.String("config"))
			if err != nil {
				return err
			}
			if name := c.String("remote"); name != "" {
				conf.Remote = name
			}
			if conf.Remote == "" {
				return cmdline.UsageError("which remote? --remote NAME, or remote: NAME in the config", "uwf remote list")
			}
			return run(c, conf)
		},
	}
}

// print prints a result in the requested format.
func (cmd *command) print(v any, text func(io.Writer) error) error {
	return render.Print(cmd.env.Stdout, cmdline.Format(cmd.format, cmd.env.Stdout), v, text)
}
