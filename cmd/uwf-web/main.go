// Command uwf-web shows the threads of a home in a browser; "uwf web" starts it. It is
// a program of its own because it links an HTTP server, which no other command needs.
//
// It reads through engine/view with an engine that cannot write, holds no lock, and
// ends with its terminal. With --actions, what a person does on a page starts uwf as a
// process of its own, so that neither a closed page nor the end of the server stops it.
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
		fmt.Fprintln(os.Stderr, "uwf-web:", err)
		os.Exit(1)
	}
	ctx, stop := proc.WithSignals(context.Background())
	status := run(ctx, e)
	stop()
	os.Exit(status)
}
