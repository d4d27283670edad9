// Command sqlite does with a SQLite database what command files does with a store
// of ours, and what our programs do beside that: sqlite <database> <what…>. The
// library is modernc.org/sqlite, SQLite translated to Go; it is some tenths slower
// than SQLite in C, and starts as our own programs do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/united-workforce/uwf/internal/bench/ops"
)

const usage = "copy <store> | verify | collect <hash> | export <file> | import <file> | " + ops.Usage

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sqlite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("want a database, and " + usage)
	}
	s, err := open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	switch what, rest := args[1], args[2:]; {
	case what == "verify":
		return s.verify(ctx)
	case what == "copy" && len(rest) == 1:
		return s.copyFrom(ctx, rest[0])
	case what == "collect" && len(rest) == 1:
		return s.collect(ctx, rest[0])
	case what == "export" && len(rest) == 1:
		return s.export(ctx, rest[0])
	case what == "import" && len(rest) == 1:
		return s.importFrom(ctx, rest[0])
	}
	return ops.Do(ctx, s, time.Now, args[1:])
}
