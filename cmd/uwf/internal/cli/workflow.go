package cli

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

func (a *app) workflowCommand() *ucli.Command {
	return a.group(ucli.Command{
		Name: "workflow", Aliases: []string{"wf"}, Usage: "create, validate, register and inspect workflows",
		Subcommands: []*ucli.Command{
			a.leaf(ucli.Command{
				Name: "put", Aliases: []string{"add"}, Usage: "validate a workflow file, store it, and register its name",
				ArgsUsage: "<file.yaml>",
			}, a.workflowPut),
			a.workflowNewCommand(),
			a.workflowValidateCommand(),
			a.workflowShowCommand(),
			a.workflowGraphCommand(),
			a.workflowDiffCommand(),
			a.leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "list the workflows of the project and the registry",
			}, a.workflowList),
		},
	})
}

func (a *app) workflowPut(ctx context.Context, c *ucli.Context) error {
	def, err := a.readWorkflow(ctx, a.path(c.Args().First()))
	if err != nil {
		return err
	}
	release, err := a.holdStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	h, err := a.storeWorkflow(ctx, def)
	if err != nil {
		return err
	}
	x, err := a.index()
	if err != nil {
		return err
	}
	if err := x.Register(ctx, def.Name, h); err != nil {
		return fmt.Errorf("register workflow %q: %w", def.Name, err)
	}
	a.hint("uwf run %s -p '<task>'", def.Name)
	return a.print(protocol.WorkflowPut{Name: def.Name, Hash: h}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  %s\n", def.Name, h)
		return err
	})
}

// registeredName is the first name in the registry that points at h.
func (a *app) registeredName(ctx context.Context, h cas.Hash) *string {
	x, err := a.index()
	if err != nil {
		return nil
	}
	names, err := x.Workflows(ctx)
	if err != nil {
		return nil
	}
	for _, n := range names {
		if n.Hash == h && n.Problem == "" {
			return &n.Name
		}
	}
	return nil
}

func (a *app) workflowList(ctx context.Context, _ *ucli.Context) error {
	found, err := a.discover()
	if err != nil {
		return err
	}
	x, err := a.index()
	if err != nil {
		return err
	}
	registered, err := x.Workflows(ctx)
	if err != nil {
		return err
	}
	for _, n := range registered {
		if n.Problem != "" {
			a.say("uwf: warning: registry.yaml: the name %q %s: nothing can be started by it", n.Name, n.Problem)
		}
	}
	items := a.workflowItems(found, registered)
	if len(items) == 0 {
		a.hint("uwf workflow new <name>")
	}
	return a.print(items, func(w io.Writer) error { return workflowsText(w, items) })
}

// The origins of a workflow, in the original's words.
const (
	originProject  = "local"
	originRegistry = "global"
)

// workflowItems are the files of the project, and what is registered unless a
// file hides it.
func (a *app) workflowItems(found []workflow.Found, registered []heads.Named) []protocol.WorkflowItem {
	items := []protocol.WorkflowItem{}
	local := map[string]bool{}
	for _, f := range found {
		local[f.Name] = true
		items = append(items, protocol.WorkflowItem{Name: f.Name, Hash: "(local)", Origin: originProject, Path: a.shown(f.Path)})
	}
	for _, n := range registered {
		if !local[n.Name] && n.Problem == "" {
			items = append(items, protocol.WorkflowItem{Name: n.Name, Hash: string(n.Hash), Origin: originRegistry})
		}
	}
	return items
}

func workflowsText(w io.Writer, items []protocol.WorkflowItem) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "there is no workflow yet")
		return err
	}
	t := newTable("NAME", "ORIGIN", "FILE OR HASH")
	for _, it := range items {
		if it.Origin == originProject {
			t.row(it.Name, "project", it.Path)
		} else {
			t.row(it.Name, "registered", it.Hash)
		}
	}
	return t.print(w)
}
