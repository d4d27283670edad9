// Command release is the project's own tooling. It is never tagged and never
// installed: run it from anywhere in the tree with
//
//	go run ./internal/release
//
// which lists its commands.
//
// The modules of the workspace require each other by plain version, without
// replace, because a replace makes "go install …@version" fail. Between
// releases these versions exist nowhere, and "go mod tidy" ignores go.work.
// So whatever has to resolve a sibling outside the workspace gets it from a
// proxy of files that is built from the tree as it is.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], process{environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr})
	stop()
	os.Exit(code)
}
