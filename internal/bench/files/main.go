// Command files does one thing with a store of ours and ends: files <store>
// <what…>. It is what a step pays for its nodes, without the step.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/internal/bench/ops"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want a store, and %s", ops.Usage)
	}
	s, err := fsstore.Open(ctx, args[0], fsstore.Options{Home: args[0]})
	if err != nil {
		return err
	}
	return ops.Do(ctx, s, time.Now, args[1:])
}
