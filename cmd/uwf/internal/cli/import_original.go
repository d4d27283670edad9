package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// importProgram brings the original's data. It is a program of its own because it
// links SQLite, which no other command needs.
const importProgram = "uwf-import-original"

// importOriginalCommand runs the program that is found beside uwf, or on the PATH;
// its exit status is that of uwf.
func (a commands) importOriginalCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "import-original", Usage: "import workflows, threads and config from the TypeScript uwf",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "ocas", Usage: "`DIR` of the original's nodes and variables (default: ~/.ocas)"},
			&ucli.StringFlag{Name: "uwf", Usage: "`DIR` of the original's config and older index (default: ~/.uwf)"},
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only show what would be imported"},
		},
	}, a.importOriginal)
}

func (a commands) importOriginal(ctx context.Context, c *ucli.Context) error {
	program, err := a.beside(importProgram)
	if err != nil {
		return cmdline.NotFound(importProgram+" is not installed",
			"go install github.com/united-workforce/uwf/cmd/"+importProgram+"@latest")
	}
	args := a.globalArgs()
	for _, name := range []string{"ocas", "uwf"} {
		if dir := c.String(name); dir != "" {
			args = append(args, "--"+name, dir)
		}
	}
	if c.Bool("dry-run") {
		args = append(args, "--dry-run")
	}
	return a.runProgram(ctx, program, args, a.Env.Stdin, nil)
}

// runProgram runs a program of ours in the place of this one; its exit status is that of
// uwf. end asks it to end; nil: by an interrupt.
func (a commands) runProgram(ctx context.Context, program string, args []string, stdin io.Reader, end func() error) error {
	child := exec.CommandContext(ctx, program, args...)
	child.Dir, child.Env = a.Env.Dir, a.Env.Environ
	child.Stdin, child.Stdout, child.Stderr = stdin, terminal.ForChild(a.Env.Stdout), terminal.ForChild(a.Env.Stderr)
	// It is asked to end, not killed: what it has begun is to be whole.
	child.Cancel = end
	if end == nil {
		child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	}
	err := child.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() >= 0 {
		a.Exit = failed.ExitCode() // it has said why
		return nil
	}
	if err != nil {
		return &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("run %s: %v", program, err), Err: err}
	}
	return nil
}

// globalArgs are the global flags that stand before the command.
func (a commands) globalArgs() []string {
	var args []string
	for _, flag := range []struct{ name, value string }{
		{"--home", a.Flags.Home}, {"--store", a.Flags.Store}, {"--format", a.Flags.Format},
	} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	return args
}

// beside finds a program of ours in the directory of this one, else on the PATH.
func (a commands) beside(name string) (string, error) {
	if a.Env.Exe != "" {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(a.Env.Exe), name)); err == nil {
			return path, nil
		}
	}
	return proc.LookPath(name, a.Env.Dir, a.Env.Environ)
}
