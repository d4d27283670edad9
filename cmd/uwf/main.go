// Command uwf runs workflows of AI agents, one step at a time.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/util/env"
)

func main() {
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uwf:", err)
		os.Exit(1)
	}
	// A command makes some garbage and ends; checking a whole store makes much and
	// keeps little. Collecting it less often costs some megabytes.
	debug.SetGCPercent(400)
	os.Exit(cli.Main(context.Background(), e))
}
