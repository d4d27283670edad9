// Command bench measures what uwf promises about speed and memory. Every
// figure is a ratio between two things that are measured in turn in one run, or an
// exponent of growth, because absolute times mean little on a machine that is
// shared: make bench prints the table, docs/performance.md says how to read it.
//
// A row is a promise and the sides of its comparison (row.go); rows are in files by
// family, and what they run on is made when it is first needed and removed at the
// end. A promise that is not kept is shown as MISSED; the exit status is 1 only if
// a row could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	bin  string
	only *regexp.Regexp
	pace pace
	full bool
	json bool
	list bool
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.bin, "bin", "bin", "`directory` with the programs that are measured")
	only := f.String("run", "", "only rows whose \"family: name | against\" matches this `regexp`")
	f.IntVar(&o.pace.rounds, "n", 20, "counted `rounds` of a row, at most")
	f.DurationVar(&o.pace.budget, "time", 2*time.Second, "`time` after which a row with three rounds ends early")
	f.BoolVar(&o.full, "full", false, "also 100,000 steps and threads, 1,000,000 nodes, 200 threads at once")
	f.BoolVar(&o.json, "json", false, "print JSON instead of tables")
	f.BoolVar(&o.list, "list", false, "print the names of the rows and measure nothing")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is too much: there are only flags", f.Arg(0))
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{full: o.full, made: map[string]any{}}
	if b.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	rows, err := b.rows(o.only)
	if err != nil {
		return err
	}
	if o.list {
		for _, r := range rows {
			fmt.Println(r.title())
		}
		return nil
	}
	if b.dir, err = os.MkdirTemp("", "uwf-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	out := report{Machine: here(b.dir)}
	for i, r := range rows {
		fmt.Fprintf(os.Stderr, "%d/%d %s\n", i+1, len(rows), r.title())
		out.Rows = append(out.Rows, r.measure(ctx, o.pace))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return out.print(o.json)
}

func (r report) print(asJSON bool) error {
	show := r.table
	if asJSON {
		show = r.json
	}
	if err := show(os.Stdout); err != nil {
		return err
	}
	if failed := r.unmeasured(); len(failed) > 0 {
		return fmt.Errorf("could not be measured: %s", strings.Join(failed, ", "))
	}
	return nil
}

// rows are all rows that were asked for, family by family.
func (b *bench) rows(only *regexp.Regexp) ([]row, error) {
	starts, err := b.startRows()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, family := range []struct {
		name string
		rows []row
	}{
		{"step", b.stepRows()}, {"memory", b.memoryRows()}, {"start-up", starts}, {"reading", b.readingRows()},
		{"store", b.storeRows()}, {"load", b.loadRows()},
	} {
		for _, r := range family.rows {
			r.family = family.name
			if only.MatchString(r.title()) {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}
