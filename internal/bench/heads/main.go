// Command heads reads the nodes that a file of threads names from a store, and ends.
// It is what a command pays for its nodes, without the command:
//
//	heads <store> <threads.yaml>
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "heads:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want <store> <threads.yaml>")
	}
	s, err := fsstore.Open(ctx, args[0], fsstore.Options{Home: args[0]})
	if err != nil {
		return err
	}
	f, err := os.Open(args[1])
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
