package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/bundles"
	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/cmd/uwf/internal/remotes"
	"github.com/united-workforce/uwf/cmd/uwf/internal/settings"
	"github.com/united-workforce/uwf/cmd/uwf/internal/threads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// root is the command tree, listed in one place in the order of help.
func (a commands) root() *ucli.App {
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
			&ucli.StringFlag{Name: "store", Aliases: []string{"ocas-home"}, Usage: "`DIR` of the node store (default: $OCAS_HOME, else cas in the home)"},
			&ucli.BoolFlag{Name: "debug", Usage: "print to stderr, before each action, the facts about the thread and the rule that applies"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress on stderr"},
			&ucli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"},
			&ucli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help"},
		},
		Commands: []*ucli.Command{
			threads.New(a.App).Run(), threads.New(a.App).Tick(),
			workflows.New(a.App).Command(),
			threads.New(a.App).Command(),
			a.inboxCommand(),
			a.statsCommand(),
			a.webCommand(),
			a.remoteCommand(),
			remotes.New(a.App).Push(), remotes.New(a.App).Pull(), remotes.New(a.App).Fetch(),
			a.stepCommand(),
			settings.New(a.App).Config(),
			a.logCommand(),
			a.guideCommand(),
			a.schemaCommand(),
			bundles.New(a.App).Verify(),
			a.casCommand(),
			settings.New(a.App).Setup(),
			settings.New(a.App).Doctor(),
			a.completionCommand(),
			a.importOriginalCommand(),
			a.versionCommand(),
		},
		Metadata:                  map[string]any{cmdline.RenamedKey: renamed()},
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Writer:                    a.Env.Stdout,
		ErrWriter:                 a.Env.Stderr,
		Before:                    a.readGlobals,
		ExitErrHandler:            func(*ucli.Context, error) {}, // Main maps errors to exit statuses
		OnUsageError:              cmdline.OnUsageError,
	}
	root.Commands = append(root.Commands, a.completeCommand(root), a.helpCommand(root))
	app.InGroups(root.Commands, topLevel())
	a.withPager(root.Commands, "uwf")
	a.WithCreators(root.Commands, app.Creators()...)
	cmdline.PlainDefaults(root.Flags)
	root.Action = func(c *ucli.Context) error {
		if c.Bool("help") {
			return ucli.ShowAppHelp(c)
		}
		if c.Bool("version") {
			_, err := fmt.Fprintln(a.Env.Stdout, "uwf", cmdline.Version())
			return err
		}
		if c.Args().Len() == 0 { // a script that forgot a word must notice
			a.Status = protocol.CodeUsage
			root.Writer = a.Env.Stderr
			return ucli.ShowAppHelp(c)
		}
		return cmdline.UnknownCommand(c, a.Env.Stderr, "uwf", root.Commands)
	}
	return root
}

// topLevel says under which heading of the help a command stands. Headings are sorted by
// their names.
func topLevel() map[string]string {
	return map[string]string{
		"run": doing, "run-due": doing, "thread": doing, "workflow": doing, "inbox": doing, "stats": doing, "web": doing, "remote": sharing, "push": sharing, "pull": sharing, "fetch": sharing,
		"step": forAgents, "guide": forAgents, "schema": forAgents,
		"verify": keeping, "cas": keeping, "log": keeping, "import-original": keeping,
		"setup": settingUp, "doctor": settingUp, "config": settingUp, "completion": settingUp, "version": settingUp,
		"help": settingUp,
	}
}

const (
	doing     = "Run"
	sharing   = "Share"
	forAgents = "Write agents and workflows"
	keeping   = "Maintain"
	settingUp = "Set up"
)

func (a commands) versionCommand() *ucli.Command {
	return a.Leaf(ucli.Command{Name: "version", Usage: "print the version"}, func(context.Context, *ucli.Context) error {
		result := map[string]string{"version": cmdline.Version()}
		return a.Print(result, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "uwf", cmdline.Version())
			return err
		})
	})
}
