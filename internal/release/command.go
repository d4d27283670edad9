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
  archives -o DIR [-version V] [-only OS/ARCH,...] [-nfpm PROGRAM]  what people install from, and SHA256SUMS
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

// arguments are what stands behind the name of a command.
type arguments struct {
	out, version, only, nfpm string
	sums                     bool
	dirs                     []string
}

func dispatch(ctx context.Context, args []string, p process) error {
	flags := newFlags(p)
	dir := flags.String("C", ".", "a directory of the tree")
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	name, rest := flags.Arg(0), flags.Args()[min(1, flags.NArg()):]
	known := map[string]func(context.Context, *tree, arguments, process) error{
		"proxy": proxyCommand, "archives": archivesCommand,
		"tidy": func(ctx context.Context, t *tree, a arguments, p process) error { return t.tidy(ctx, a.sums, p) },
		"install-check": func(ctx context.Context, t *tree, a arguments, p process) error {
			return t.installCheck(ctx, a.dirs, p)
		},
		"release": func(ctx context.Context, t *tree, a arguments, p process) error { return t.release(ctx, a.version, p) },
	}
	if known[name] == nil {
		flags.Usage()
		return flag.ErrHelp
	}
	a, err := argumentsOf(name, rest, p)
	if err != nil {
		return err
	}
	t, err := loadTree(*dir)
	if err != nil {
		return err
	}
	return known[name](ctx, t, a, p)
}

// argumentsOf reads the arguments of a command, and refuses those of others.
func argumentsOf(name string, args []string, p process) (a arguments, err error) {
	flags := newFlags(p)
	switch name {
	case "proxy", "archives":
		flags.StringVar(&a.out, "o", "", "the directory for it")
		flags.StringVar(&a.version, "version", "", "default: what the go.mod files require")
		flags.StringVar(&a.nfpm, "nfpm", "", "the nfpm program, for Debian packages; default: make none")
		flags.StringVar(&a.only, "only", "", "targets such as linux/amd64,windows/arm64; default: all")
	case "release":
		flags.StringVar(&a.version, "version", "", "such as v0.2.0")
	case "tidy":
		flags.BoolVar(&a.sums, "sums", false, "keep the siblings' lines in go.sum: for the commit of a release")
	}
	if err := flags.Parse(args); err != nil {
		return a, flag.ErrHelp
	}
	a.dirs = flags.Args()
	needed := map[string]string{"proxy": a.out, "archives": a.out, "release": a.version}
	if value, needs := needed[name]; needs && value == "" || len(a.dirs) > 0 && name != "install-check" {
		flags.Usage()
		return a, flag.ErrHelp
	}
	return a, nil
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

func newFlags(p process) *flag.FlagSet {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	flags.Usage = func() { fmt.Fprint(p.stderr, usage) }
	return flags
}
