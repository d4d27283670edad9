package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

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
		Name: program, Usage: "run the threads of a remote on many machines", Version: cmdline.Version(),
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}},
		Commands: []*ucli.Command{
			cmd.leaf("worker", "run steps until it receives a signal; running steps finish first", "", cmd.worker,
				&ucli.StringFlag{Name: "queue", Usage: "`NAME` task queue (default from the config)"},
				&ucli.IntFlag{Name: "max-concurrent-steps", Usage: "`N` maximum number of steps to run at once (default from the config)"},
				&ucli.StringFlag{Name: "listen", Usage: "`ADDR` serve GET /healthz on host:port (default from the config)"}),
			cmd.leaf("run", "start a thread on the remote and let workers run it to its end", "[<workflow>]", cmd.start,
				&ucli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "`TEXT` task; @FILE reads it from a file"},
				&ucli.StringSliceFlag{Name: "var", Usage: "`NAME=VALUE` set an input of the workflow"},
				&ucli.StringFlag{Name: "title", Usage: "`TITLE` title in lists"},
				&ucli.StringFlag{Name: "workspace", Usage: "`MODE` where agents work: in-place, worktree or none (default from the config)"},
				&ucli.StringFlag{Name: "thread", Usage: "`ID` run this thread of the remote instead of a new one"},
				&ucli.BoolFlag{Name: "wait", Usage: "wait until the thread ends"}),
			cmd.leaf("stop", "stop running a thread", "<thread>", cmd.stop),
			cmd.leaf("retry", "continue failed threads", "", cmd.retry,
				&ucli.BoolFlag{Name: "failed", Usage: "all threads whose Temporal workflow failed"},
				&ucli.StringFlag{Name: "since", Usage: "`DURATION` only threads that failed within this time, such as 1h"}),
			cmd.leaf("list", "list running threads and their workers", "", cmd.list,
				&ucli.BoolFlag{Name: "all", Usage: "include threads that no longer run"},
				&ucli.IntFlag{Name: "limit", Usage: "`N` maximum number of threads", Value: defaultLimit}),
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
			return cmdline.UsageError("unknown command "+c.Args().First(), program+" --help")
		}
		return cmdline.Help(e.Stdout, app, nil)
	}
	err := cmdline.Run(ctx, app, e.Args)
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
		&ucli.StringFlag{Name: "config", Usage: "`FILE` config file (default temporal.yaml in the home)"},
		&ucli.StringFlag{Name: "remote", Usage: "`NAME` remote (default from the config)"},
		&ucli.BoolFlag{Name: "json", Usage: "same as --format json"},
		&ucli.StringFlag{Name: "format", Usage: "`FORMAT` output format: json, yaml or text (default text on a terminal, else json)"})
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
				return cmdline.UsageError("missing remote: --remote NAME, or remote: NAME in the config", "uwf remote list")
			}
			return run(c, conf)
		},
	}
}

// print prints a result in the requested format.
func (cmd *command) print(v any, text func(io.Writer) error) error {
	return render.Print(cmd.env.Stdout, cmdline.Format(cmd.format, cmd.env.Stdout), v, text)
}
