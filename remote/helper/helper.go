// Package helper implements the main function of a remote helper program:
//
//	uwf-remote-<scheme> <address>
//
// A helper written in Go only supplies the [remote.Remote] for an address.
package helper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/terminal"
)

// Open opens the remote of an address for a client.
type Open func(ctx context.Context, e env.Env, a remote.Address, h wire.Hello) (remote.Remote, error)

// Serve does the same as [Main] for the process described by e.
func Serve(ctx context.Context, e env.Env, name string, open Open) error {
	if len(e.Args) == 1 && e.Args[0] == "--version" {
		_, err := fmt.Fprintln(e.Stdout, name, Version())
		return err
	}
	if len(e.Args) != 1 || strings.HasPrefix(e.Args[0], "-") {
		return errors.New("only uwf can start this program, with the address of a remote")
	}
	a, err := remote.ParseAddress(e.Args[0], e.Dir)
	if err != nil {
		return err
	}
	out, err := stream(e)
	if err != nil {
		return err
	}
	return wire.Serve(ctx, e.Stdin, out, func(ctx context.Context, h wire.Hello) (remote.Remote,
		error) {
		return open(ctx, e, a, h)
	})
}

// stream returns stdout for binary data. It returns an error if stdout is a terminal.
func stream(e env.Env) (io.Writer, error) {
	if terminal.Is(e.Stdout) {
		return nil, errors.New("stdin is a terminal: only uwf can start this program")
	}
	return e.Stdout, nil
}

// Version returns the version that "go install" stamped into the program. Package cmdline would link a
// command-line parser, which helpers don't need.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
