// Command torture subjects uwf to failures of machines and people, thousands of times, and checks after each
// that what docs/guarantees.md guarantees holds: every acknowledged step exists, finished work counts once,
// the store is sound, the next step continues, and no attacker gets further than SECURITY.md describes. It
// runs the released programs through their command lines.
//
//	torture -bin DIR [-time 10m] [-only points,races] [-seed N]
//	torture -bin DIR -only points,races -seed N -all [-match TEXT]
//
// A failure prints the seed and the directory in which it happened, which is kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/torture/trace"
	"github.com/united-workforce/uwf/util/env"
)

func main() {
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status, ours := part(e)
	if !ours {
		if err := torture(ctx, e); err != nil {
			fmt.Fprintln(os.Stderr, "torture:", err)
			status = 1
			if errors.Is(err, errUsage) {
				status = 2
			}
		}
	}
	stop()
	os.Exit(status)
}

// errUsage reports invalid arguments.
var errUsage = errors.New("wrong arguments")

// part runs one of the parts for which the program starts itself.
func part(e env.Env) (status int, ours bool) {
	if len(e.Args) == 0 {
		return 0, false
	}
	name := e.Args[0]
	e.Args = e.Args[1:]
	switch name {
	case agentPart:
		return agent(e), true
	case tracePart:
		return traced(e), true
	case foolPart:
		fool(e)
		return 0, true
	}
	return 0, false
}

// torture runs the requested scenarios and prints a row for each.
func torture(ctx context.Context, e env.Env) error {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(e.Stderr)
	bin := flags.String("bin", "bin", "directory of the programs under test")
	budget := flags.Duration("time", 10*time.Minute, "for all scenarios together")
	only := flags.String("only", "", "scenarios, separated by commas")
	seed := flags.Uint64("seed", uint64(e.Now().UnixNano()), "what the randomness begins with")
	whole := flags.Bool("all", false, "points: try every one, whatever time it takes")
	match := flags.String("match", "", "points, liars, repositories, outsiders: only those that contain this, such as \"thread kill: EIO\"")
	if err := flags.Parse(e.Args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	chosen, err := choose(*only)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	abs, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "uwf-torture-")
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "seed %d, %s for %d scenarios\n", *seed, *budget, len(chosen))
	var failed []error
	for _, s := range chosen {
		t := newTrial(tools{bin: abs, self: e.Exe, env: e}, filepath.Join(dir, s.name), *seed, *budget/time.Duration(len(chosen)))
		t.whole, t.match = *whole, *match
		err := t.play(ctx, s)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s (seed %d, %s): %w", s.name, *seed, t.dir, err))
		}
		t.row(e.Stdout, s, err)
	}
	if err := errors.Join(append(failed, ctx.Err())...); err != nil {
		return err
	}
	return removeAll(dir)
}

// choose finds scenarios by name; an empty list means all.
func choose(names string) ([]scenario, error) {
	all := scenarios()
	if names == "" {
		return all, nil
	}
	var out []scenario
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no scenario %s", names, name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// play runs one scenario.
func (t *trial) play(ctx context.Context, s scenario) error {
	err := s.run(ctx, t)
	if errors.Is(err, trace.ErrUnsupported) {
		t.note("not here: %v", err)
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // other errors are a consequence
	}
	return err
}

// row prints the result of a scenario.
func (t *trial) row(out io.Writer, s scenario, err error) {
	verdict := "held"
	if err != nil {
		verdict = "BROKEN"
	}
	fmt.Fprintf(out, "%-12s %-6s %6d rounds  %s\n", s.name, verdict, t.rounds, s.what)
	for _, n := range t.notes {
		fmt.Fprintf(out, "%35s%s\n", "", n)
	}
}
