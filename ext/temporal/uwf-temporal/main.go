// Command uwf-temporal lets workers on many machines step the threads of a remote, with
// Temporal saying who works when: see docs/machines.md.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

func main() {
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, program+":", err)
		os.Exit(1)
	}
	ctx, stop := proc.WithSignals(context.Background())
	status := run(ctx, e)
	stop()
	os.Exit(status)
}
