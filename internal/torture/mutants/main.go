// Command mutants tells whether the torturer can see what it looks for: it
// breaks a promise in a copy of the sources, one at a time, builds that, and
// tortures it. A mutant that survives is a hole in the tests.
//
//	go run ./internal/torture/mutants [-only TEXT] [-time 2m]
//
// Run it from the root of the tree. The tree itself is never changed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/env"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	e, err := env.OS()
	if err == nil {
		err = run(ctx, e)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the mutants and prints a row for each.
func run(ctx context.Context, e env.Env) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(e.Stderr)
	only := flags.String("only", "", "mutants whose name contains this")
	limit := flags.Duration("time", 2*time.Minute, "for each mutant; most are caught in seconds")
	if err := flags.Parse(e.Args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "uwf-mutants-")
	if err != nil {
		return err
	}
	l := lab{dir: dir, tree: filepath.Join(dir, "tree"), limit: *limit, env: e}
	err = errors.Join(l.all(ctx, *only), ctx.Err())
	return errors.Join(err, os.RemoveAll(dir))
}

// lab is where mutants are made: a copy of the tree, and what is built from it.
type lab struct {
	dir, tree string
	limit     time.Duration
	env       env.Env
}

func (l lab) all(ctx context.Context, only string) error {
	if err := l.copyTree(ctx); err != nil {
		return err
	}
	survived := 0
	for _, m := range mutants() {
		if !strings.Contains(m.name, only) || ctx.Err() != nil {
			continue
		}
		report, err := l.try(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		verdict := "caught  "
		if report == "" {
			verdict = "SURVIVED"
			survived++
		}
		fmt.Fprintf(l.env.Stdout, "%s  %s\n            %s\n", verdict, m.name, report)
	}
	if survived > 0 {
		return fmt.Errorf("%d survived", survived)
	}
	return nil
}

// copyTree copies what git knows, in its present form.
func (l lab) copyTree(ctx context.Context) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tree: %w", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, but not committed
		}
		to := filepath.Join(l.tree, name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// try returns what the torturer says of a mutant, "" if it finds nothing.
func (l lab) try(ctx context.Context, m mutant) (string, error) {
	restore, err := m.apply(l.tree)
	if err != nil {
		return "", err
	}
	report, err := l.torture(ctx, m)
	return report, errors.Join(err, restore())
}

func (l lab) torture(ctx context.Context, m mutant) (string, error) {
	bin := filepath.Join(l.dir, "bin")
	if out, err := l.command(ctx, "go", "build", "-o", bin+string(filepath.Separator), "./cmd/uwf", "./cmd/uwf-builtin", "./internal/torture").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	args := append([]string{"-bin", bin, "-time", l.limit.String(), "-seed", "1"}, m.torture...)
	var stderr bytes.Buffer
	cmd := l.command(ctx, filepath.Join(bin, "torture"), args...)
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return firstOf(stderr.String()), nil
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return "", err
}

// command runs in the copy, with all that it leaves in the lab.
func (l lab) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = l.tree
	cmd.Env = append(l.env.Environ[:len(l.env.Environ):len(l.env.Environ)], "CGO_ENABLED=0", "TMPDIR="+l.dir)
	return cmd
}

// firstOf is the verdict without what the programs have printed.
func firstOf(report string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(report), "\n")
	return line
}
