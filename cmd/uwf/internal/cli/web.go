package cli

import (
	"context"
	"os"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/cmdline"
)

// webProgram shows threads in a browser. It is a program of its own because it links an
// HTTP server.
const webProgram = "uwf-web"

func (a commands) webCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "web", Usage: "show threads in a browser, live: what waits, what runs, how runs went, what they cost",
		Description: "It prints an address that only you can use, on this machine, and ends with Ctrl-C. It only looks;\n" +
			"with --actions its pages can answer, go on, stop and fork, too. See docs/web.md.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "actions", Usage: "let the pages start uwf: answer, go on, stop, fork"},
			&ucli.StringFlag{Name: "port", Usage: "listen on `PORT` (default: a free one)"},
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
	if port := c.String("port"); port != "" {
		args = append(args, "--port", port)
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
