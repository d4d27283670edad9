package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// process is what the commands know about the process that they run in.
type process struct {
	environ        []string
	stdout, stderr io.Writer
}

const usage = `usage: release [-C DIR] COMMAND
  proxy -o DIR [-version V]   build a module proxy in DIR from the tree
  tidy [-sums]                go mod tidy in every module, siblings from the tree
  install-check [dir...]      go install each command from such a proxy
  fuzz -time T                run every fuzz test for T, such as 20s
  archives -o DIR [-version V] [-only OS/ARCH,...]  an archive of all commands for each target, and SHA256SUMS
  size                        count the lines of Go, tests aside
  release -version V          commit and tag a release; it pushes nothing
`

// run runs one command and returns the exit status: 0, 1 failed, 2 usage.
func run(ctx context.Context, args []string, p process) int {
	err := dispatch(ctx, args, p)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 2
	}
	fmt.Fprintln(p.stderr, "release:", err)
	return 1
}

func dispatch(ctx context.Context, args []string, p process) error {
	global := newFlags("release", p)
	dir := global.String("C", ".", "a directory of the tree")
	if err := global.Parse(args); err != nil {
		return flag.ErrHelp
	}
	commands := map[string]func(context.Context, *tree, []string, process) error{
		"proxy":         proxyCommand,
		"tidy":          tidyCommand,
		"install-check": installCommand,
		"fuzz":          fuzzCommand,
		"archives":      archivesCommand,
		"release":       releaseCommand,
		"size":          sizeCommand,
	}
	command, ok := commands[global.Arg(0)]
	if !ok {
		global.Usage()
		return flag.ErrHelp
	}
	t, err := loadTree(*dir)
	if err != nil {
		return err
	}
	return command(ctx, t, global.Args()[1:], p)
}

func proxyCommand(ctx context.Context, t *tree, args []string, p process) error {
	flags := newFlags("proxy", p)
	out := flags.String("o", "", "the proxy's directory")
	version := flags.String("version", "", "default: what the go.mod files require")
	if err := flags.Parse(args); err != nil || *out == "" || flags.NArg() > 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	v, err := t.versionOr(*version)
	if err != nil {
		return err
	}
	if err := t.publishAll(ctx, *out, v); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d modules at %s; use it with GOPROXY=%s\n", len(t.modules), v, fileURL(*out))
	return nil
}

func tidyCommand(ctx context.Context, t *tree, args []string, p process) error {
	flags := newFlags("tidy", p)
	sums := flags.Bool("sums", false, "keep the siblings' lines in go.sum: for the commit of a release")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	return t.tidy(ctx, *sums, p)
}

func installCommand(ctx context.Context, t *tree, args []string, p process) error {
	flags := newFlags("install-check", p)
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	return t.installCheck(ctx, flags.Args(), p)
}

func fuzzCommand(ctx context.Context, t *tree, args []string, p process) error {
	flags := newFlags("fuzz", p)
	each := flags.String("time", "20s", "for each fuzz test, as -fuzztime of go test")
	total := flags.Duration("for", 0, "begin none after this time; 0: all")
	seed := flags.Uint64("seed", 0, "puts them in another order")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	return t.fuzz(ctx, *each, *total, *seed, p)
}

func archivesCommand(ctx context.Context, t *tree, args []string, p process) error {
	flags := newFlags("archives", p)
	out := flags.String("o", "", "the directory for them")
	version := flags.String("version", "", "default: what the go.mod files require")
	only := flags.String("only", "", "targets such as linux/amd64,windows/arm64; default: all")
	if err := flags.Parse(args); err != nil || *out == "" || flags.NArg() > 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	v, err := t.versionOr(*version)
	if err != nil {
		return err
	}
	targets, err := targetsNamed(*only)
	if err != nil {
		return err
	}
	return t.archives(ctx, *out, v, targets, p)
}

func releaseCommand(ctx context.Context, t *tree, args []string, p process) error {
	flags := newFlags("release", p)
	version := flags.String("version", "", "such as v0.2.0")
	if err := flags.Parse(args); err != nil || *version == "" || flags.NArg() > 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	return t.release(ctx, *version, p)
}

func newFlags(name string, p process) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	flags.Usage = func() { fmt.Fprint(p.stderr, usage) }
	return flags
}
