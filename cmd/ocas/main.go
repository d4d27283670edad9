// Command ocas works with the content-addressed store directly: it puts, gets and lists nodes, checks the
// store, and collects garbage. The commands come from package ocascli; "uwf cas" has the same.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

func main() {
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ocas:", err)
		os.Exit(1)
	}
	// Reading a whole store creates much garbage and keeps little. Collecting it less often makes fsck a
	// third faster and costs a few megabytes.
	debug.SetGCPercent(400)
	ctx, stop := proc.WithSignals(context.Background())
	defer stop()
	patience := func() time.Duration { return time.Second }
	os.Exit(proc.UntilSignal(ctx, patience, func() int { return run(ctx, e) }))
}
