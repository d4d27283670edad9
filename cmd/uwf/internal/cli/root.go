package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
)

// root is the command tree, listed in one place in the order of help.
func (a *app) root() *ucli.App {
	root := &ucli.App{
		Name:    "uwf",
		Usage:   "run workflows of AI agents, one verifiable step at a time",
		Version: cmdline.Version(),
		Description: "   uwf setup                               # once: who plays the roles\n" +
			"   uwf workflow new hello                  # a workflow file to begin with\n" +
			"   uwf run ./hello.yaml -p 'Say hello'     # to the end, or until a person is needed\n" +
			"   uwf thread resume @ -p 'Yes'            # answer, or go on after Ctrl-C\n" +
			"   uwf thread read @                       # the whole run\n\n" +
			"uwf help TOPIC covers " + strings.Join(guide.Topics(), ", ") + ".",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "format", Usage: "`FORMAT` of results: json, yaml or text (default: text on a terminal, else json)"},
			&ucli.BoolFlag{Name: "json", Usage: "the same as --format json"},
			&ucli.StringFlag{Name: "home", Usage: "`DIR` of threads, workflows and config (default: $UWF_HOME, else ~/.uwf)"},
			&ucli.StringFlag{Name: "ocas-home", Usage: "`DIR` of the node store (default: $OCAS_HOME, else cas in the home)"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress on stderr"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help"},
		},
		Commands: []*ucli.Command{
			a.runCommand(), a.tickCommand(),
			a.workflowCommand(),
			a.threadCommand(),
			a.inboxCommand(),
			a.statsCommand(),
			a.webCommand(),
			a.stepCommand(),
			a.configCommand(),
			a.logCommand(),
			a.promptCommand(),
			a.schemaCommand(),
			a.bundleCommand(),
			a.casCommand(),
			a.setupCommand(),
			a.doctorCommand(),
			a.completionCommand(),
			a.importOriginalCommand(),
			a.versionCommand(),
		},
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Writer:                    a.env.Stdout,
		ErrWriter:                 a.env.Stderr,
		Before:                    a.readGlobals,
		ExitErrHandler:            func(*ucli.Context, error) {}, // Main maps errors to exit statuses
		OnUsageError:              cmdline.OnUsageError,
	}
	root.Commands = append(root.Commands, a.manCommand(root), a.completeCommand(root), a.helpCommand(root))
	inGroups(root.Commands, topLevel())
	a.withPager(root.Commands, "uwf")
	a.withCreators(root.Commands, creators()...)
	cmdline.PlainDefaults(root.Flags)
	root.Action = func(c *ucli.Context) error {
		if c.Bool("help") {
			return ucli.ShowAppHelp(c)
		}
		if c.Bool("version") {
			_, err := fmt.Fprintln(a.env.Stdout, "uwf", cmdline.Version())
			return err
		}
		if c.Args().Len() == 0 { // a script that forgot a word must notice
			a.status = protocol.CodeUsage
			root.Writer = a.env.Stderr
			return ucli.ShowAppHelp(c)
		}
		return cmdline.UnknownCommand(c, a.env.Stderr, "uwf", root.Commands)
	}
	return root
}

// leaf is a command that does something; see [cmdline.Leaf]. A flag that is given
// and empty comes of a variable that is not set: without it, the command would do
// something else than was meant.
func (a *app) leaf(c ucli.Command, run func(ctx context.Context, c *ucli.Context) error) *ucli.Command {
	flags := c.Flags
	return cmdline.Leaf(c, func(ctx context.Context, cc *ucli.Context) error {
		for _, f := range flags {
			name := f.Names()[0]
			if _, text := f.(*ucli.StringFlag); text && cc.IsSet(name) && cc.String(name) == "" && name != "prompt" {
				return cmdline.UsageError("flag --"+name+" is empty", cc.Command.HelpName+" --help")
			}
		}
		return run(ctx, cc)
	})
}

// group is a command that only holds others.
func (a *app) group(c ucli.Command) *ucli.Command { return cmdline.Group(a.env.Stderr, c) }

func (a *app) versionCommand() *ucli.Command {
	return a.leaf(ucli.Command{Name: "version", Usage: "print the version"}, func(context.Context, *ucli.Context) error {
		result := map[string]string{"version": cmdline.Version()}
		return a.print(result, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "uwf", cmdline.Version())
			return err
		})
	})
}

// say tells the user something on stderr that is not a result.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintln(a.env.Stderr, plaintext.Indent(fmt.Sprintf(format, args...)))
	}
}

// hint is a line with the next command to type.
func (a *app) hint(format string, args ...any) { a.say("hint: "+format, args...) }

// endsAs sets the exit status of commands that see a thread come to rest: a script
// must notice that a person is needed, or that the thread cannot go on.
func (a *app) endsAs(out protocol.StepOutput) {
	switch {
	case out.Status == protocol.StatusSuspended && out.Question == nil && out.Error != nil && out.Error.Code == protocol.CodeBudget:
		a.status = protocol.CodeBudget
	case out.Status == protocol.StatusSuspended, out.Status == protocol.StatusParked:
		a.status = protocol.CodeSuspended
	case out.Status == protocol.StatusFailed && out.Error != nil:
		a.status = out.Error.Code
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
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, pairs[i], plaintext.Line(pairs[i+1])); err != nil {
			return err
		}
	}
	return nil
}
