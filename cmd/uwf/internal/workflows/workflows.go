// Package workflows implements the command uwf workflow.
package workflows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

// Commands provides the commands of this package.
type Commands struct{ *app.App }

// Command returns the command uwf workflow.
func (a Commands) Command() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "workflow", Aliases: []string{"wf"}, Usage: "create, validate, register and inspect workflows",
		Subcommands: slices.Concat(
			cmdline.Under(cmdline.Common,
				a.workflowNewCommand(), a.workflowValidateCommand(),
				a.Leaf(ucli.Command{
					Name: "list", Aliases: []string{"ls"}, Usage: "list the project's and the registered workflows",
				}, a.workflowList), a.workflowShowCommand()),
			cmdline.Under("Inspect", a.workflowGraphCommand(), a.workflowDiffCommand()),
			cmdline.Under("Manage",
				a.Leaf(ucli.Command{
					Name: "put", Aliases: []string{"add"}, Usage: "register a workflow file under its name",
					ArgsUsage: "<file.yaml>", Flags: []ucli.Flag{YesFlag()},
				}, a.workflowPut),
				a.workflowImportCommand(), a.workflowTrustCommand(), a.workflowUpdateCommand(), a.workflowRemoveCommand()),
		),
	})
}

func (a Commands) workflowPut(ctx context.Context, c *ucli.Context) error {
	a.Takes, a.Yes = true, c.Bool("yes")
	put, err := a.Workflows().Put(ctx, c.Args().First())
	if err != nil {
		return err
	}
	a.Hint("uwf run %s -p '<task>'", plaintext.Word(put.Name))
	return a.Printf(put, "%s  %s\n", put.Name, put.Hash)
}

func (a Commands) workflowList(ctx context.Context, _ *ucli.Context) error {
	items, err := a.Workflows().List(ctx)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		a.Hint("uwf workflow new <name>")
	}
	return a.Print(items, func(w *term.Page) { workflowsText(w, items) })
}

func workflowsText(w *term.Page, items []protocol.WorkflowItem) {
	if len(items) == 0 {
		w.Printf("no workflows yet\n")
		return
	}
	t := term.NewTable("NAME", "ORIGIN", "FILE OR HASH")
	for _, it := range items {
		if it.Origin == catalog.OriginProject {
			t.Row(it.Name, "project", it.Path)
		} else {
			t.Row(it.Name, "registered", it.Hash)
		}
	}
	w.Table(t)
}

func (a Commands) workflowShowCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "show", Usage: "print a workflow", ArgsUsage: "<name|hash|file>",
	}, a.workflowShow)
}

func (a Commands) workflowShow(ctx context.Context, c *ucli.Context) error {
	h, err := a.Workflows().Find(ctx, c.Args().First())
	if err != nil {
		return err
	}
	if f := a.Format(nil); f != render.JSON {
		return a.showSource(ctx, h, f)
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	n, err := s.Get(ctx, h)
	if err != nil {
		return err
	}
	payload, err := n.Value()
	if err != nil {
		return err
	}
	show := protocol.WorkflowShow{Hash: h, Type: n.Type, Payload: payload, Timestamp: n.Timestamp, Name: protocol.NullString(a.Workflows().Name(ctx, h))}
	return a.Print(show, nil)
}

// showSource prints a workflow as a file. For a person, the first line identifies the workflow; it is a
// comment, so the text can still be stored with put.
func (a Commands) showSource(ctx context.Context, h cas.Hash, f render.Format) error {
	def, err := a.Workflows().Stored(ctx, h)
	if err != nil {
		return err
	}
	text, err := workflowtext.YAML(def)
	if err != nil {
		return err
	}
	if f == render.Text {
		registered := ""
		if name := a.Workflows().Name(ctx, h); name != "" {
			registered = ", registered as " + name
		}
		if _, err := fmt.Fprintf(a.Env.Stdout, "# workflow %s%s\n", h, registered); err != nil {
			return err
		}
	}
	_, err = a.Env.Stdout.Write(text)
	return err
}

// GraphFormats returns the formats of uwf workflow graph.
func GraphFormats() []string { return []string{"text", "mermaid", "dot", "svg", "json", "yaml"} }

func (a Commands) workflowGraphCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "graph", Usage: "draw a workflow's graph", ArgsUsage: "<name|hash|file>",
		Flags: []ucli.Flag{a.FormatFlag(GraphFormats(), "text")},
	}, a.workflowGraph)
}

func (a Commands) workflowGraph(ctx context.Context, c *ucli.Context) error {
	def, err := a.Workflows().Definition(ctx, c.Args().First())
	if err != nil {
		return err
	}
	g := diagram.Of(def.Workflow)
	return a.Draw(ctx, g, g, a.OwnFormat(c), term.OfPicture)
}

// Draw prints a graph in a format. JSON and YAML print value.
func (a Commands) Draw(ctx context.Context, value any, g diagram.Graph, format string, of func(line string) terminal.Sequence) error {
	out := ""
	switch format {
	case "json", "yaml":
		return a.Print(value, nil)
	case "mermaid":
		out = g.Mermaid()
	case "dot":
		out = g.DOT()
	case "svg":
		picture := webcall.Request{Picture: &webcall.Picture{Graph: g, Busy: g.Busy}}
		_, err := webcall.Write(ctx, a.Env, picture, a.Env.Stdout, "--format mermaid")
		return err
	default:
		return a.Page(func(w *term.Page) { w.Coloured(g.Text(a.Width()), of) })(a.Env.Stdout)
	}
	_, err := io.WriteString(a.Env.Stdout, out)
	return err
}

type diffOutput struct {
	Equal   bool                  `json:"equal"`
	Changes []workflowdiff.Change `json:"changes"`
}

func (a Commands) workflowDiffCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "diff", Usage: "compare two workflows",
		ArgsUsage: "<name|hash|file> <name|hash|file>",
	}, a.workflowDiff)
}

func (a Commands) workflowDiff(ctx context.Context, c *ucli.Context) error {
	before, err := a.Workflows().Definition(ctx, c.Args().Get(0))
	if err != nil {
		return err
	}
	after, err := a.Workflows().Definition(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	changes := workflowdiff.Compare(before, after)
	if len(changes) > 0 {
		a.Status = protocol.CodeFailed
	}
	return a.Print(diffOutput{Equal: len(changes) == 0, Changes: changes}, func(w *term.Page) {
		if len(changes) == 0 {
			return
		}
		w.Coloured(fmt.Sprintf("--- %s\n+++ %s\n%s", c.Args().Get(0), c.Args().Get(1), workflowdiff.Text(changes)), term.OfDiff)
	})
}

// formatGitHub is a report format that only workflow validate has.
const formatGitHub = "github"

// ValidateFormats returns the formats of uwf workflow validate.
func ValidateFormats() []string { return []string{"text", "json", "yaml", formatGitHub} }

func (a Commands) workflowValidateCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "validate", Aliases: []string{"check"}, Usage: "check workflow files for errors",
		ArgsUsage: "<file.yaml…>",
		Flags:     []ucli.Flag{a.FormatFlag(ValidateFormats(), "text on a terminal, else json")},
	}, a.workflowValidate)
}

func (a Commands) workflowValidate(ctx context.Context, c *ucli.Context) error {
	files := c.Args().Slice()
	all, valid, err := a.problems(ctx, files)
	if err != nil {
		return err
	}
	result := protocol.Validation{Valid: all == nil, Errors: []string{}}
	if all != nil {
		result.Problems = all.List
	}
	if a.OwnFormat(c) == formatGitHub {
		if err := writeAnnotations(a.Env.Stdout, result.Problems); err != nil || all == nil {
			return err
		}
		bad := len(files) - len(valid) // stdout describes their problems
		return cmdline.Invalid(render.Count(len(all.List), "problem") + " in " + render.Count(bad, "file"))
	}
	for _, p := range result.Problems {
		result.Errors = append(result.Errors, fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message))
	}
	printErr := a.Print(result, func(w *term.Page) {
		for _, file := range valid { // stderr describes the problems of the others
			w.Printf("%s: valid\n", file)
		}
	})
	if all == nil {
		return printErr
	}
	if a.Flags.Format == string(render.JSON) { // stdout has them already
		a.Status = protocol.CodeInvalid
		return printErr
	}
	return errors.Join(printErr, all)
}

// problems reads all files. It returns their problems, or nil, and the valid files.
func (a Commands) problems(ctx context.Context, files []string) (*workflow.Problems, []string, error) {
	var all *workflow.Problems
	var valid []string
	for _, file := range files {
		_, err := a.Workflows().Read(ctx, file)
		var problems *workflow.Problems
		switch {
		case err == nil:
			valid = append(valid, a.Workflows().Shown(a.Env.Path(file)))
		case !errors.As(err, &problems):
			return nil, nil, err
		case all == nil:
			all = &workflow.Problems{List: problems.List}
		default:
			all.List = append(all.List, problems.List...)
		}
	}
	return all, valid, nil
}

// writeAnnotations writes problems as workflow commands for GitHub Actions, one per line: ::error
// file=…,line=…,col=…::message. The remedy follows in the message.
func writeAnnotations(w io.Writer, problems []protocol.Problem) error {
	text := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	value := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C") // escaping for a property
	for _, p := range problems {
		message := p.Message
		if p.Remedy != "" {
			message += "\n" + p.Remedy
		}
		place := "file=" + value.Replace(filepath.ToSlash(p.File))
		if p.Line > 0 {
			place += fmt.Sprintf(",line=%d,col=%d", p.Line, p.Column)
		}
		if _, err := fmt.Fprintf(w, "::error %s,title=uwf workflow::%s\n", place, text.Replace(message)); err != nil {
			return err
		}
	}
	return nil
}

type trustOutput struct {
	Name     string        `json:"name"`
	Hash     protocol.Hash `json:"hash"`
	Commands []string      `json:"commands"`
}

func (a Commands) workflowTrustCommand() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "trust", ArgsUsage: "<workflow>", Usage: "allow the commands of a workflow to run",
		Flags: []ucli.Flag{app.YesFlag()},
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine) error {
		h, err := a.Workflows().Find(ctx, c.Args().First())
		if err != nil {
			return err
		}
		w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, h)
		if err != nil {
			return err
		}
		commands, err := e.Origins().Commands(ctx, h, w)
		if err != nil {
			return err
		}
		out := trustOutput{Name: w.Name, Hash: h, Commands: commands}
		if out.Commands == nil {
			out.Commands = []string{}
		}
		what := "workflow " + w.Name + "  " + string(h)
		if err := a.Agree(ctx, c, what, commands, func() error { return e.Origins().Trust(ctx, h) }); err != nil {
			return err
		}
		return a.Print(out, func(wr *term.Page) { app.PrintAgreed(wr, what, commands) })
	})
}

func (a Commands) workflowRemoveCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "rm", ArgsUsage: "<name>", Usage: "unregister a workflow; its threads stay",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "delete without prompting"}},
	}, func(ctx context.Context, c *ucli.Context) error {
		x, err := a.Index()
		if err != nil {
			return err
		}
		name := c.Args().First()
		if known, err := x.Workflow(ctx, name); err == nil && terminal.Is(a.Env.Stdin) && !c.Bool("yes") { // scripts are never asked
			if err := a.Confirm(ctx, fmt.Sprintf("Remove the name %s of workflow %s?", name, known), "uwf workflow rm "+plaintext.Word(name)+" --yes"); err != nil {
				return err
			}
		}
		h, err := x.Unregister(ctx, name)
		if errors.Is(err, heads.ErrNoWorkflow) {
			return cmdline.NotFound("no workflow is registered as "+plaintext.Line(name), "uwf workflow list")
		}
		if err != nil {
			return err
		}
		return a.Printf(protocol.WorkflowRemoved{Name: name, Hash: h, Removed: true}, "%s  %s  removed\n", name, h)
	})
}
