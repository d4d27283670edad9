package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/render"
)

const program = "uwf-web"

// run runs one command line and returns its exit status.
func run(ctx context.Context, e env.Env) int {
	format := ""
	app := &ucli.App{
		Name: program, Usage: "show threads in a browser", Version: cmdline.Version(),
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "actions", Usage: "let users answer, continue, stop and fork threads"},
			&ucli.StringFlag{Name: "port", Usage: "`PORT` port on localhost (default a free one)", Value: "0"},
			&ucli.StringFlag{Name: "listen", Usage: "`ADDR` listen address such as 0.0.0.0:8443; needs a token and TLS"},
			&ucli.StringFlag{Name: "token-file", Usage: "`FILE` sign-in token; only you may have read access to it"},
			&ucli.StringFlag{Name: "tls-cert", Usage: "`FILE` TLS certificate file (PEM)"},
			&ucli.StringFlag{Name: "tls-key", Usage: "`FILE` TLS private key file (PEM)"},
			&ucli.StringFlag{Name: "socket", Usage: "`PATH` Unix socket for a TLS proxy; needs --token-file and --address"},
			&ucli.StringFlag{Name: "address", Usage: "`URL` public address of the proxy"},
			&ucli.StringFlag{Name: "home", Usage: "`DIR` directory for threads, workflows and config (default $UWF_HOME, else ~/.uwf)"},
			&ucli.StringFlag{Name: "store", Aliases: []string{"ocas-home"},
				Usage: "`DIR` directory of the node store (default $OCAS_HOME, else cas in the home)"},
			&ucli.BoolFlag{Name: "until-stdin-ends", Hidden: true, Usage: "exit at the end of stdin"},
			&ucli.StringFlag{Name: "format", Usage: "`FORMAT` output format: json, yaml or text (default text on a terminal, else json)"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "print help"},
		},
		HideVersion: true, HideHelp: true,
		Writer: e.Stdout, ErrWriter: e.Stderr,
		ExitErrHandler: func(*ucli.Context, error) {}, // run maps errors to exit statuses
		OnUsageError:   cmdline.OnUsageError,
	}
	app.Action = func(c *ucli.Context) error {
		format = c.String("format")
		if err := cmdline.CheckFormat(format); err != nil {
			return err
		}
		switch {
		case c.Bool("version"):
			_, err := fmt.Fprintln(e.Stdout, program, cmdline.Version())
			return err
		case c.Args().Len() > 0:
			return cmdline.UsageError("unexpected argument: "+c.Args().First(), program+" --help")
		}
		return serve(c.Context, e, c, cmdline.Format(format, e.Stdout))
	}
	cmdline.PlainDefaults(app.Flags)
	err := cmdline.Run(ctx, app, e.Args)
	if err == nil {
		return 0
	}
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		coded = &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	}
	cmdline.Report(e.Stderr, program, coded, format == string(render.JSON))
	return coded.Code.ExitCode()
}

// started is the program's output.
type started struct {
	Address string `json:"address"`
	Actions bool   `json:"actions"`
}

// maxAnswer bounds how long a browser may take to read a response, such as a long turn.
const maxAnswer = 5 * time.Minute

// serve serves the pages until ctx is cancelled.
func serve(ctx context.Context, e env.Env, c *ucli.Context, format render.Format) error {
	if port, err := strconv.ParseUint(c.String("port"), 10, 16); err != nil {
		return cmdline.UsageError(fmt.Sprintf("--port must be a number up to 65535, got %q", c.String("port")),
			"--port "+strconv.FormatUint(port, 10))
	}
	w, err := wished(c)
	if err != nil {
		return err
	}
	s, err := newServer(ctx, e, c.String("home"), c.String("store"))
	if err != nil {
		return err
	}
	if s.acts = c.Bool("actions"); s.acts && e.Exe == "" {
		return &protocol.Error{Code: protocol.CodeFailed, Message: "cannot run actions in the background: the path of " + program + " is unknown"}
	}
	listener, at, err := w.open(ctx, e)
	if err != nil {
		return err
	}
	g, err := newGuard(at, e.Rand, s)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.takeLinks(g)
	ctx, end := context.WithCancel(ctx)
	defer end()
	if c.Bool("until-stdin-ends") {
		go func() {
			_, _ = io.Copy(io.Discard, e.Stdin)
			end()
		}()
	}
	web := &http.Server{
		Handler: g, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		WriteTimeout: maxAnswer, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	answer := started{Address: g.address(), Actions: s.acts}
	err = render.Print(e.Stdout, format, answer, func(w io.Writer) error {
		what := "Read-only; to answer and continue threads: uwf web --actions"
		switch {
		case answer.Actions && g.token != "":
			what = "Anyone with the token can run your agents."
		case answer.Actions:
			what = "Anyone with this address can run your agents; keep it private."
		}
		_, err := fmt.Fprintf(w, "%s\n%s Ctrl-C ends it.\n", answer.Address, what)
		return err
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.name()
	go s.count(ctx)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return web.Close() // it only shows data, so nothing is lost
	}
}

// newServer opens the home read-only.
func newServer(ctx context.Context, e env.Env, home, store string) (*server, error) {
	with, err := engine.Open(ctx, e, engine.Options{Home: home, Store: store})
	if err != nil {
		return nil, err
	}
	with.Reader.ReadOnly = true
	if files, ok := with.Reader.Heads.(*fileheads.Heads); ok {
		files.Now = e.Now
	}
	with.Reader.Hints = uwfHints
	s := &server{engine: with, env: e, known: view.SavedSummaries(with)}
	return s, s.parse()
}

// uwfHints returns the hints of the command line.
func uwfHints(why ...protocol.Reason) []string { return hints.Of("", why...) }
