// Command uwf-import-original imports the data of the original uwf, in TypeScript on @ocas/core, from ~/.ocas
// and ~/.uwf into a home of uwf. It is a separate program because it links SQLite; "uwf import-original"
// starts it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/united-workforce/uwf/util/env"
)

func main() {
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uwf-import-original:", err)
		os.Exit(1)
	}
	debug.SetGCPercent(400) // much garbage, little live data
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, e)
	stop()
	os.Exit(status)
}
