package cli

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/secret"
)

func (a *app) workflowCommand() *ucli.Command {
	return a.group(ucli.Command{
		Name: "workflow", Aliases: []string{"wf"}, Usage: "create, validate, register and inspect workflows",
		Subcommands: []*ucli.Command{
			a.leaf(ucli.Command{
				Name: "put", Aliases: []string{"add"}, Usage: "validate a workflow file, store it, and register its name",
				ArgsUsage: "<file.yaml>", Flags: []ucli.Flag{yesFlag()},
			}, a.workflowPut),
			a.workflowNewCommand(),
			a.workflowValidateCommand(),
			a.workflowShowCommand(),
			a.workflowGraphCommand(),
			a.workflowDiffCommand(),
			a.leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "list the workflows of the project and the registry",
			}, a.workflowList),
			a.workflowTrustCommand(),
			a.workflowUpdateCommand(),
			a.workflowRemoveCommand(),
		},
	})
}

func (a *app) workflowPut(ctx context.Context, c *ucli.Context) error {
	a.takes, a.yes = true, c.Bool("yes")
	put, err := a.workflows().Put(ctx, c.Args().First())
	if err != nil {
		return err
	}
	a.hint("uwf run %s -p '<task>'", plaintext.Word(put.Name))
	return a.print(put, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  %s\n", put.Name, put.Hash)
		return err
	})
}

func (a *app) workflowList(ctx context.Context, _ *ucli.Context) error {
	items, err := a.workflows().List(ctx)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		a.hint("uwf workflow new <name>")
	}
	return a.print(items, func(w io.Writer) error { return workflowsText(w, items) })
}

func workflowsText(w io.Writer, items []protocol.WorkflowItem) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "there is no workflow yet")
		return err
	}
	t := newTable("NAME", "ORIGIN", "FILE OR HASH")
	for _, it := range items {
		if it.Origin == catalog.OriginProject {
			t.row(it.Name, "project", it.Path)
		} else {
			t.row(it.Name, "registered", it.Hash)
		}
	}
	return t.print(w)
}

// workflows are those that can be named from here.
func (a *app) workflows() *catalog.Catalog {
	if a.catalog == nil {
		a.catalog = &catalog.Catalog{
			Env: a.env, Store: a.store, Secrets: a.secrets, Fetch: a.fetched,
			Registry: func() (heads.Registry, error) { return a.index() },
			Note:     func(text string) { a.say("note: %s", text) },
			Warn:     func(text string) { a.say("uwf: warning: %s", text) },
		}
	}
	return a.catalog
}

// secrets are those of the home that is in force, as far as it has any.
func (a *app) secrets() *secret.Set {
	dirs, err := home.Find(a.env, a.flags.home, a.flags.store)
	if err != nil {
		return secret.NewSet()
	}
	return secret.NewSet(config.Secrets(dirs.Config(), dirs.DotEnv(), a.env)...)
}
