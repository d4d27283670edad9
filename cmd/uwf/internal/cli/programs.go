package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// importProgram brings the original's data. It is a program of its own because it
// links SQLite, which no other command needs.
const importProgram = "uwf-import-original"

// importOriginalCommand runs the program that is found beside uwf, or on the PATH;
// its exit status is that of uwf.
func (a commands) importOriginalCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "import-original", Usage: "import workflows, threads and config from the TypeScript uwf",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "ocas", Usage: "`DIR` of the original's nodes and variables (default: ~/.ocas)"},
			&ucli.StringFlag{Name: "uwf", Usage: "`DIR` of the original's config and older index (default: ~/.uwf)"},
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only show what would be imported"},
		},
	}, a.importOriginal)
}

func (a commands) importOriginal(ctx context.Context, c *ucli.Context) error {
	program, err := a.beside(importProgram)
	if err != nil {
		return cmdline.NotFound(importProgram+" is not installed",
			"go install github.com/united-workforce/uwf/cmd/"+importProgram+"@latest")
	}
	args := a.globalArgs()
	for _, name := range []string{"ocas", "uwf"} {
		if dir := c.String(name); dir != "" {
			args = append(args, "--"+name, dir)
		}
	}
	if c.Bool("dry-run") {
		args = append(args, "--dry-run")
	}
	return a.runProgram(ctx, program, args, a.Env.Stdin, nil)
}

// runProgram runs a program of ours in the place of this one; its exit status is that of
// uwf. end asks it to end; nil: by an interrupt.
func (a commands) runProgram(ctx context.Context, program string, args []string, stdin io.Reader, end func() error) error {
	child := exec.CommandContext(ctx, program, args...)
	child.Dir, child.Env = a.Env.Dir, a.Env.Environ
	child.Stdin, child.Stdout, child.Stderr = stdin, terminal.ForChild(a.Env.Stdout), terminal.ForChild(a.Env.Stderr)
	// It is asked to end, not killed: what it has begun is to be whole.
	child.Cancel = end
	if end == nil {
		child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	}
	err := child.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() >= 0 {
		a.Exit = failed.ExitCode() // it has said why
		return nil
	}
	if err != nil {
		return &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("run %s: %v", program, err), Err: err}
	}
	return nil
}

// globalArgs are the global flags that stand before the command.
func (a commands) globalArgs() []string {
	var args []string
	for _, flag := range []struct{ name, value string }{
		{"--home", a.Flags.Home}, {"--store", a.Flags.Store}, {"--format", a.Flags.Format},
	} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	return args
}

// beside finds a program of ours in the directory of this one, else on the PATH.
func (a commands) beside(name string) (string, error) {
	if a.Env.Exe != "" {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(a.Env.Exe), name)); err == nil {
			return path, nil
		}
	}
	return proc.LookPath(name, a.Env.Dir, a.Env.Environ)
}

// webProgram shows threads in a browser. It is a program of its own because it links an
// HTTP server.
const webProgram = "uwf-web"

func (a commands) webCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "web", Usage: "show threads in a browser, live: what waits, what runs, how runs went, what they cost",
		Description: "It prints an address that only you can use, on this machine, and ends with Ctrl-C. It only looks;\n" +
			"with --actions its pages can answer, go on, stop and fork, too. For other machines it needs a token\n" +
			"to sign in with, and TLS or a proxy that has it. See docs/web.md.\n\n" +
			"   uwf web --actions\n" +
			"   uwf web --listen 0.0.0.0:8443 --token-file token --tls-cert cert.pem --tls-key key.pem\n" +
			"   uwf web --socket web.sock --address https://uwf.example.org --token-file token",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "actions", Usage: "let the pages start uwf: answer, go on, stop, fork"},
			&ucli.StringFlag{Name: "port", Usage: "listen on `PORT` of this machine (default: a free one)"},
			&ucli.StringFlag{Name: "listen", Usage: "listen on `ADDR`, as 0.0.0.0:8443; elsewhere than on this machine it needs the next three"},
			&ucli.StringFlag{Name: "token-file", Usage: "`FILE` with the token that people sign in with; only you may read it"},
			&ucli.StringFlag{Name: "tls-cert", Usage: "`FILE` with the certificate, in PEM"},
			&ucli.StringFlag{Name: "tls-key", Usage: "`FILE` with its key, in PEM"},
			&ucli.StringFlag{Name: "socket", Usage: "listen on the socket `PATH`, for a proxy that has TLS; needs --token-file and --address"},
			&ucli.StringFlag{Name: "address", Usage: "`URL` of the proxy, as browsers show it"},
		},
	}, a.web)
}

func (a commands) web(ctx context.Context, c *ucli.Context) error {
	program, err := a.beside(webProgram)
	if err != nil {
		return cmdline.NotFound(webProgram+" is not installed", "go install github.com/united-workforce/uwf/cmd/"+webProgram+"@latest")
	}
	if _, err := a.Dirs(); err != nil { // says what is wrong with the home
		return err
	}
	args := append(a.globalArgs(), "--until-stdin-ends")
	if c.Bool("actions") {
		args = append(args, "--actions")
	}
	for _, name := range []string{"port", "listen", "token-file", "tls-cert", "tls-key", "socket", "address"} {
		if value := c.String(name); value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	// Nothing is ever written to the pipe: its end is the end of this process.
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	err = a.runProgram(ctx, program, args, read, write.Close)
	if ctx.Err() != nil { // Ctrl-C is how it ends
		return nil
	}
	_ = write.Close()
	return err
}

// remoteCommand is uwf remote.
func (a commands) remoteCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "remote", Usage: "other places that hold threads: a directory, another machine, a database",
		Description: "   uwf remote add team build@ci.example:threads\n" +
			"   uwf push @ team                         # take a thread there\n" +
			"   uwf pull 01M7Z… team                    # bring it here\n" +
			"   uwf thread step 01M7Z… --remote team    # one step of it, from anywhere",
		Subcommands: append(remotes.New(a.App).Named(),
			a.Leaf(ucli.Command{
				Name: "serve", ArgsUsage: "<directory>", Usage: "be a remote for one client, on stdin and stdout; ssh starts it",
				Description: "The directory is a home of its own, and made by the first push; it may also be one that somebody\n" +
					"works in. In ~/.ssh/authorized_keys, command=\"uwf remote serve /srv/team\" lets a key do nothing else.\n" +
					"The protocol is that of docs/remotes.md.",
			}, a.remoteServe),
		),
	})
}

func (a commands) remoteServe(ctx context.Context, c *ucli.Context) error {
	if terminal.Is(a.Env.Stdout) {
		return cmdline.UsageError("it speaks a protocol, and not to a terminal", "uwf remote add <name> host:path")
	}
	dir, err := home.Absolute(a.Env, c.Args().First())
	if err != nil {
		return err
	}
	err = wire.Serve(ctx, a.Env.Stdin, a.Env.Stdout, func(ctx context.Context, h wire.Hello) (remote.Remote, error) {
		return storeremote.Open(ctx, dir, storeremote.Options{Hash: h.Hash, Program: "uwf " + cmdline.Version(), Now: a.Env.Now})
	})
	var wrong *remote.FaultError
	if errors.As(err, &wrong) {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "the client: " + wrong.Error(), Err: err}
	}
	return err
}

func (a commands) schemaCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "schema", Usage: "the schemas of what uwf stores, and of the files people write",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "hash", ArgsUsage: "<kind>",
				Usage: "print the hash of a kind's schema in this store: " + strings.Join(typeNames(), ", "),
			}, a.schemaHash),
			a.Leaf(ucli.Command{
				Name: "show", ArgsUsage: "<kind>", Usage: "print a kind's JSON Schema",
			}, a.schemaShow),
			a.Leaf(ucli.Command{
				Name: "workflow", Usage: "print a JSON Schema for editors of workflow files",
				Description: "uwf schema workflow > workflow.schema.json, and as first line of the workflow:\n" +
					"# yaml-language-server: $schema=workflow.schema.json",
			}, a.editorSchema(protocol.EditWorkflow)),
			a.Leaf(ucli.Command{
				Name: "config", Usage: "print a JSON Schema for editors of config.yaml",
			}, a.editorSchema(protocol.EditConfig)),
		},
	})
}

func typeNames() (names []string) {
	for _, t := range protocol.Types() {
		names = append(names, t.String())
	}
	return names
}

func typeOf(word string) (protocol.Type, error) {
	word = strings.TrimPrefix(word, protocol.TitlePrefix)
	t, ok := protocol.ParseType(word)
	if ok && t.Known() {
		return t, nil
	}
	return t, cmdline.NotFound("no such kind: "+word, cmdline.Choices("", word, typeNames())...)
}

func (a commands) schemaHash(ctx context.Context, c *ucli.Context) error {
	t, err := typeOf(c.Args().First())
	if err != nil {
		return err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	h := s.Kinds().Schema(t).Hash
	return a.Printf(map[string]any{"kind": t.Kind, "version": t.Version, "title": t.Title(), "hash": h}, "%v\n", h)
}

func (a commands) schemaShow(_ context.Context, c *ucli.Context) error {
	t, err := typeOf(c.Args().First())
	if err != nil {
		return err
	}
	_, err = a.Env.Stdout.Write(protocol.SchemaJSON(t))
	return err
}

func (a commands) editorSchema(f protocol.EditorFile) func(context.Context, *ucli.Context) error {
	return func(context.Context, *ucli.Context) error {
		_, err := a.Env.Stdout.Write(protocol.EditorSchema(f))
		return err
	}
}
