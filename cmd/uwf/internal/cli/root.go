package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/suggest"
)

// root is the command tree, listed in one place in the order of help.
func (a *app) root() *ucli.App {
	root := &ucli.App{
		Name:    "uwf",
		Usage:   "run workflows of AI agents, one verifiable step at a time",
		Version: version(),
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "format", Usage: "how results are printed: json, yaml or text (default: text on a terminal, else json)"},
			&ucli.StringFlag{Name: "home", Usage: "`DIR` of threads, workflows and config (default: $UWF_HOME, else ~/.uwf)"},
			&ucli.StringFlag{Name: "ocas-home", Usage: "`DIR` of the node store (default: $OCAS_HOME, else cas in the home)"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress on stderr"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help"},
		},
		Commands: []*ucli.Command{
			a.runCommand(),
			a.workflowCommand(),
			a.threadCommand(),
			a.stepCommand(),
			a.schemaCommand(),
		},
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Writer:                    a.env.Stdout,
		ErrWriter:                 a.env.Stderr,
		Before:                    a.readGlobals,
		ExitErrHandler:            func(*ucli.Context, error) {}, // Main maps errors to exit statuses
		OnUsageError:              onUsageError,
	}
	root.Commands = append(root.Commands, a.helpCommand(root))
	plainDefaults(root.Flags)
	root.Action = func(c *ucli.Context) error {
		if c.Bool("help") {
			return ucli.ShowAppHelp(c)
		}
		if c.Bool("version") {
			_, err := fmt.Fprintln(a.env.Stdout, "uwf", version())
			return err
		}
		return a.unknownCommand(c, "uwf", root.Commands)
	}
	return root
}

// leaf is a command that does something. run gets the positional arguments,
// checked against the words in argsUsage: <x> is required, [x] is not, and a
// last word that ends in … takes any number.
func (a *app) leaf(c ucli.Command, run func(ctx context.Context, c *ucli.Context) error) *ucli.Command {
	c.HideHelpCommand = true
	c.OnUsageError = onUsageError
	plainDefaults(c.Flags)
	c.Action = func(cc *ucli.Context) error {
		if err := checkArgs(cc); err != nil {
			return err
		}
		return run(cc.Context, cc)
	}
	return &c
}

// plainDefaults leaves "(default: false)" out of the help.
func plainDefaults(flags []ucli.Flag) {
	for _, f := range flags {
		switch f := f.(type) {
		case *ucli.BoolFlag:
			f.DisableDefaultText = true
		case *ucli.DurationFlag:
			f.DefaultText = "none"
		}
	}
}

// group is a command that only holds others.
func (a *app) group(c ucli.Command) *ucli.Command {
	c.HideHelpCommand = true
	c.OnUsageError = onUsageError
	c.Action = func(cc *ucli.Context) error { return a.unknownCommand(cc, cc.Command.HelpName, c.Subcommands) }
	return &c
}

// unknownCommand answers a command line that names no command. Help goes to
// stderr and the status is 2: a script that forgot a word must notice.
func (a *app) unknownCommand(c *ucli.Context, at string, commands []*ucli.Command) error {
	if c.Args().Len() == 0 {
		c.App.Writer = a.env.Stderr
		if err := ucli.ShowSubcommandHelp(c); err != nil {
			return err
		}
		return usageError("which command?", at+" --help")
	}
	word := c.Args().First()
	var names []string
	for _, cmd := range commands {
		if !cmd.Hidden {
			names = append(names, cmd.Names()...)
		}
	}
	hints := []string{at + " --help"}
	if near := suggest.Nearest(word, names, 1); len(near) > 0 {
		hints = append([]string{fmt.Sprintf("did you mean %s %s?", at, near[0])}, hints...)
	}
	return usageError(fmt.Sprintf("unknown command %q", strings.TrimSpace(strings.TrimPrefix(at+" "+word, "uwf "))), hints...)
}

func (a *app) helpCommand(root *ucli.App) *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "help", Usage: "show the help of a command", ArgsUsage: "[command…]",
	}, func(ctx context.Context, c *ucli.Context) error {
		return root.RunContext(ctx, append(append([]string{"uwf"}, c.Args().Slice()...), "--help"))
	})
}

func onUsageError(c *ucli.Context, err error, _ bool) error {
	at := "uwf"
	if c.Command != nil && c.Command.HelpName != "" {
		at = c.Command.HelpName
	}
	return usageError(err.Error(), at+" --help")
}

// checkArgs holds the positional arguments against the command's ArgsUsage.
func checkArgs(c *ucli.Context) error {
	words := strings.Fields(c.Command.ArgsUsage)
	min, max := 0, len(words)
	for _, w := range words {
		if strings.HasPrefix(w, "<") {
			min++
		}
		if strings.HasSuffix(strings.TrimRight(w, ">]"), "…") {
			max = 1 << 20
		}
	}
	n := c.Args().Len()
	help := c.Command.HelpName + " --help"
	switch {
	case n < min:
		return usageError(fmt.Sprintf("missing argument %s", words[n]), help)
	case n > max:
		return usageError(fmt.Sprintf("unexpected argument %q", c.Args().Get(max)), help)
	}
	for i := range min {
		if strings.TrimSpace(c.Args().Get(i)) == "" {
			return usageError(fmt.Sprintf("argument %s is empty", words[i]), help)
		}
	}
	return nil
}

// version is what `go install` stamped into the binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// say tells the user something on stderr that is not a result.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintf(a.env.Stderr, format+"\n", args...)
	}
}

// hint is a line with the next command to type.
func (a *app) hint(format string, args ...any) { a.say("hint: "+format, args...) }

// suspendedIs sets the exit status of commands that run to an end.
func (a *app) suspendedIs(out protocol.StepOutput) {
	if out.Status == protocol.StatusSuspended {
		a.status = protocol.CodeSuspended
	}
}

// textLines prints aligned "name  value" lines, leaving out empty values.
func textLines(w io.Writer, pairs ...string) error {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" && len(pairs[i]) > width {
			width = len(pairs[i])
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}
