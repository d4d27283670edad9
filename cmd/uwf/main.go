// Command uwf runs workflows of AI agents, one step at a time.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
)

func main() {
	if status, dispatched := bind.Dispatch(os.Args[1:], os.Environ(), os.Stderr); dispatched {
		os.Exit(status)
	}
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uwf:", err)
		os.Exit(1)
	}
	// Most commands create little garbage and exit; checking a whole store creates much and keeps little.
	// Collecting it less often costs a few megabytes.
	debug.SetGCPercent(400)
	os.Exit(cli.Main(context.Background(), e))
}
