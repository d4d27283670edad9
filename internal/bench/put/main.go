// Command put commits small nodes durably, all at once, and ends: put <store>
// <how many> <number of the first>. It is what a step pays for its nodes, without
// the step.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/internal/bench/sample"
	"github.com/united-workforce/uwf/protocol"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "put:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want a store, a count and a number, got %d arguments", len(args))
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s, err := fsstore.Open(ctx, args[0], fsstore.Options{Home: args[0]})
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, time.Now, nil)
	for i := range n {
		if _, err := b.Add(ctx, protocol.Text(sample.Text(first+i))); err != nil {
			return err
		}
	}
	return b.Commit(ctx)
}
