// Command release is the project's tooling. It is never tagged or installed; run it from anywhere in the tree
// with
//
//	go run ./internal/release
//
// which lists its commands.
//
// The modules of the workspace require each other by plain version, without replace, because a replace makes
// "go install …@version" fail. Between releases these versions don't exist, and "go mod tidy" ignores
// go.work. So anything that must resolve a sibling outside the workspace uses a file proxy built from the
// current tree.
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
