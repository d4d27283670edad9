package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// process holds the process state that commands use.
type process struct {
	environ        []string
	stdout, stderr io.Writer
}

const usage = `usage: release [-C DIR] COMMAND
  proxy -o DIR [-version V]   build a module proxy in DIR from the tree
  tidy [-sums | -check]       go mod tidy in every module, siblings from the tree; -check fails if that changes a file
  install-check [dir...]      go install each command from such a proxy
  archives -o DIR [-version V] [-only OS/ARCH,...] [-nfpm PROGRAM]  what people install from, and SHA256SUMS
  size                        count the lines of Go
  release -version V          commit and tag a release; it pushes nothing
`

// run runs one command and returns the exit status: 0 on success, 1 on failure, 2 for a usage error.
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

// arguments are the arguments after a command's name.
type arguments struct {
	out, version, only, nfpm string
	sums, check              bool
	dirs                     []string
}

func dispatch(ctx context.Context, args []string, p process) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	flags.Usage = func() { fmt.Fprint(p.stderr, usage) }
	dir := flags.String("C", ".", "")
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	name, rest := flags.Arg(0), flags.Args()[min(1, flags.NArg()):]
	var a arguments
	flags.StringVar(&a.out, "o", "", "")
	flags.StringVar(&a.version, "version", "", "")
	flags.StringVar(&a.nfpm, "nfpm", "", "")
	flags.StringVar(&a.only, "only", "", "")
	flags.BoolVar(&a.sums, "sums", false, "")
	flags.BoolVar(&a.check, "check", false, "")
	if err := flags.Parse(rest); err != nil {
		return flag.ErrHelp
	}
	a.dirs = flags.Args()
	known := map[string]struct {
		run    func(context.Context, *tree, arguments, process) error
		usable bool // reports whether the arguments are valid
	}{
		"proxy":    {proxyCommand, a.out != ""},
		"archives": {archivesCommand, a.out != ""},
		"tidy":     {tidyCommand, !a.sums || !a.check},
		"install-check": {func(ctx context.Context, t *tree, a arguments, p process) error {
			return t.installCheck(ctx, a.dirs, p)
		}, true},
		"size":    {sizeCommand, true},
		"release": {func(ctx context.Context, t *tree, a arguments, p process) error { return t.release(ctx, a.version, p) }, a.version != ""},
	}
	if !known[name].usable || len(a.dirs) > 0 && name != "install-check" {
		flags.Usage()
		return flag.ErrHelp
	}
	t, err := loadTree(*dir)
	if err != nil {
		return err
	}
	return known[name].run(ctx, t, a, p)
}

func proxyCommand(ctx context.Context, t *tree, a arguments, p process) error {
	v, err := t.versionOr(a.version)
	if err != nil {
		return err
	}
	if err := t.publishAll(ctx, a.out, v); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d modules at %s; use it with GOPROXY=%s\n", len(t.modules), v, fileURL(a.out))
	return nil
}

func archivesCommand(ctx context.Context, t *tree, a arguments, p process) error {
	v, err := t.versionOr(a.version)
	if err != nil {
		return err
	}
	targets, err := targetsNamed(a.only)
	if err != nil {
		return err
	}
	return t.archives(ctx, delivery{out: a.out, version: v, targets: targets, nfpm: a.nfpm}, p)
}

func tidyCommand(ctx context.Context, t *tree, a arguments, p process) error {
	if a.check {
		return t.checkTidy(ctx, p)
	}
	return t.tidy(ctx, a.sums, p)
}
