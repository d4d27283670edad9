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
