// Command uwf-web shows the threads of a home in a browser; "uwf web" starts it. It is
// a program of its own because it links an HTTP server, which no other command needs.
//
// It reads through engine/view with an engine that cannot write, holds no lock, and
// ends with its terminal. With --actions, what a person does on a page is done by another engine,
// and agents run in background workers, so that neither a closed page nor the end of the server
// stops them.
package main

import (
	"context"
	"os"

	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/util/env"
)

func main() { os.Exit(host.Main(program, serving)) }

func serving(ctx context.Context, e env.Env) error { return host.Status(run(ctx, e)) }
