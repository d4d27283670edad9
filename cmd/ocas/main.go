// Command ocas works with the content-addressed store directly: it puts, gets and
// lists nodes, checks the store, and removes what nobody needs. The commands are
// those of package ocascli; "uwf cas" has the same.
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
		fmt.Fprintln(os.Stderr, "ocas:", err)
		os.Exit(1)
	}
	// Reading a whole store makes much garbage and keeps little: collecting it less
	// often makes fsck a third faster, and costs some megabytes.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, e)
	stop()
	os.Exit(status)
}
