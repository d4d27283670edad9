// Command uwf-web shows the threads of a home in a browser; "uwf web" starts it. It is a separate program
// because it links HTTP and templates, which no other command needs. For uwf, it also sends webhooks and writes
// single pages; see package webcall.
//
// It reads through engine/view with a read-only engine, holds no lock, and ends with its terminal. With
// --actions, another engine performs the user's actions, and agents run in background workers, so neither a
// closed page nor the end of the server stops them.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/util/env"
)

func main() {
	debug.SetGCPercent(50) // it runs all day and keeps what it has read: less memory is worth some time
	os.Exit(host.Main(program, serving))
}

func serving(ctx context.Context, e env.Env) error {
	if webcall.Called(e.Args) {
		return request(ctx, e)
	}
	return host.Status(run(ctx, e))
}
