// Command uwf-temporal lets workers on many machines step the threads of a remote, scheduled by Temporal; see
// docs/scale-out.md.
package main

import (
	"context"
	"os"

	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/ext/temporal/slot"
	"github.com/united-workforce/uwf/util/env"
)

func main() { os.Exit(host.Main(program, working)) }

func working(ctx context.Context, e env.Env) error {
	if status, called := slot.Work(ctx, e); called {
		return host.Status(status)
	}
	return host.Status(run(ctx, e))
}
