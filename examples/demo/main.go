// Command demo demonstrates uwf: three roles fix a bug in a small Go project.
//
//	go run ./examples/demo            (from the repository, or `make demo`)
//
// The model is a script (endpoint/), so the demo needs neither a key nor a network. Everything else is real:
// the agents' tools, the tests that they run, the nodes that they store. To use a real model instead, set
// UWF_DEMO_BASE_URL, UWF_DEMO_MODEL and a key in UWF_DEMO_API_KEY or OPENAI_API_KEY.
//
// It exits with 1 if any check fails, and prints the directory with its files. Otherwise it removes that
// directory unless -keep is set.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	bin := flag.String("bin", "", "directory with uwf and uwf-builtin; built if not given")
	keep := flag.Bool("keep", false, "keep what the demo makes, to look around in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	d := &demo{bin: *bin, keep: *keep, environ: os.Environ(), out: os.Stdout, progress: os.Stderr, now: time.Now}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
