// Command release is the project's own tooling. It is never tagged and never
// installed: run it from anywhere in the tree with
//
//	go run ./internal/release <command>
//
//	proxy -o DIR [-version V]   build a module proxy in DIR from the tree
//	tidy [-sums]                go mod tidy in every module, siblings from the tree
//	install-check [dir…]        go install each command from such a proxy
//	fuzz -time T                run every fuzz test for T
//	archives -o DIR             what people install from: archives, packages, formula
//	size                        count the lines of Go, tests aside
//	release -version V          commit and tag a release
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
