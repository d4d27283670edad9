// Package ops is what the programs files and sqlite do with a store, so that only
// the store differs between them.
package ops

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/internal/bench/sample"
	"github.com/united-workforce/uwf/protocol"
)

// Usage says what can be done.
const Usage = "put <n> <number of the first> | get <hash> | walk <hash> | heads <threads.yaml>"

// Do does one thing with a store: put n small nodes, all durable at the end; get
// a node; visit all that a node leads to; read the heads that a file names.
func Do(ctx context.Context, s cas.Store, now func() time.Time, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want %s", Usage)
	}
	switch args[0] {
	case "put":
		return put(ctx, s, now, args[1:])
	case "get":
		_, err := s.Get(ctx, cas.Hash(args[1]))
		return err
	case "walk":
		return walk(ctx, s, cas.Hash(args[1]))
	case "heads":
		return heads(ctx, s, args[1])
	}
	return fmt.Errorf("want %s, got %s", Usage, args[0])
}

func put(ctx context.Context, s cas.Store, now func() time.Time, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want %s", Usage)
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, now)
	for i := range n {
		if _, err := b.Add(ctx, protocol.Text(sample.Text(first+i))); err != nil {
			return err
		}
	}
	return b.Commit(ctx)
}

func walk(ctx context.Context, s cas.Store, root cas.Hash) error {
	for _, err := range cas.Walk(ctx, s, []cas.Hash{root}, cas.WalkOptions{FollowTypes: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func heads(ctx context.Context, s cas.Store, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		_, head, _ := strings.Cut(lines.Text(), ": ")
		if _, err := s.Get(ctx, cas.Hash(strings.Trim(head, `"`))); err != nil {
			return err
		}
	}
	return lines.Err()
}
