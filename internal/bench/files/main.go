// Command files does one thing with a store of ours and ends. It is what a
// command pays for its nodes, without the command:
//
//	files <store> put <n> <number of the first>  put n small nodes, all durable at the end
//	files <store> heads <threads.yaml>           read the heads that a file names
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/internal/bench/sample"
	"github.com/united-workforce/uwf/protocol"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 3 {
		return errors.New("want <store> put <n> <number of the first> | <store> heads <threads.yaml>")
	}
	s, err := fsstore.Open(ctx, args[0], fsstore.Options{Home: args[0]})
	if err != nil {
		return err
	}
	if args[1] == "put" {
		return put(ctx, s, args[2], args[len(args)-1])
	}
	return heads(ctx, s, args[2])
}

func put(ctx context.Context, s cas.Store, count, first string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, time.Now)
	for i := range n {
		if _, err := b.Add(ctx, protocol.Text(sample.Text(number+i))); err != nil {
			return err
		}
	}
	return b.Commit(ctx)
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
