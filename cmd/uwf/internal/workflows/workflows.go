// Package workflows implements the command uwf workflow.
package workflows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/subagents"
	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
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
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/util/yamltext"
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
	a.Confirms, a.Yes = true, c.Bool("yes")
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

type newOutput struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	Path     string `json:"path"`
}

func (a Commands) workflowNewCommand() *ucli.Command {
	var list strings.Builder
	for _, t := range templates.All() {
		fmt.Fprintf(&list, "   %-12s %s\n", t.Name, t.Usage)
	}
	return a.Leaf(ucli.Command{
		Name: "new", Aliases: []string{"init"}, Usage: "create a workflow file from a template", ArgsUsage: "<name>",
		Description: "Templates:\n\n" + strings.TrimRight(list.String(), "\n"),
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "template", Aliases: []string{"t"}, Value: templates.Names()[0], Usage: "`NAME` template"},
			&ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` output file or directory; - writes to stdout"},
		},
	}, a.workflowNew)
}

func (a Commands) workflowNew(_ context.Context, c *ucli.Context) error {
	name, template := strings.TrimSpace(c.Args().First()), c.String("template")
	if strings.ContainsAny(name, `/\`) {
		base := filepath.Base(filepath.FromSlash(name))
		return cmdline.UsageError(fmt.Sprintf("%q is a path, not a name", name), "uwf workflow new "+plaintext.Word(stem(base))+" -o "+plaintext.Word(stem(name)+".yaml"))
	}
	name = stem(name)
	text, err := newWorkflow(name, template)
	if err != nil {
		return err
	}
	path := ""
	if c.String("output") != "-" {
		path = a.newPath(name, c.String("output"))
	}
	if err := checkNew(path, text); err != nil {
		return err
	}
	if path == "" {
		_, err := io.WriteString(a.Env.Stdout, text)
		return err
	}
	if err := a.writeNew(path, text); err != nil {
		return err
	}
	out := newOutput{Name: name, Template: template, Path: a.Workflows().Shown(path)}
	if err := a.Printf(out, "%s: written from the template %s\n", out.Path, template); err != nil {
		return err
	}
	a.Hint("uwf workflow graph %s", plaintext.Word(typed(out.Path)))
	a.Hint("uwf run %s -p '<task>'", plaintext.Word(typed(out.Path)))
	return nil
}

// newWorkflow instantiates a template.
func newWorkflow(name, template string) (string, error) {
	if !slices.Contains(templates.Names(), template) {
		return "", cmdline.NotFound("template not found: "+template, cmdline.Choices("--template ", template, templates.Names())...)
	}
	quoted, err := yamltext.Marshal(name)
	if err != nil {
		return "", err
	}
	return templates.Text(template, name, strings.TrimSuffix(string(quoted), "\n"))
}

// newPath returns the path of the new file: in the current directory, in the given directory, or the given
// file.
func (a Commands) newPath(name, output string) string {
	if output == "" {
		return a.Env.Path(name + ".yaml")
	}
	path := a.Env.Path(output)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, name+".yaml")
	}
	return path
}

// checkNew validates the text as put does: the name may be invalid, or differ from the file's.
func checkNew(path, text string) error {
	_, err := workflow.Parse(workflow.Source{Path: path, Data: []byte(text)})
	var problems *workflow.Problems
	if !errors.As(err, &problems) {
		return err
	}
	p := problems.List[0]
	out := &protocol.Error{
		Code: protocol.CodeUsage, Message: fmt.Sprintf("invalid workflow name: %s", p.Message), Err: err,
	}
	if p.Remedy != "" {
		out.Hints = []string{p.Remedy}
	}
	return out
}

func (a Commands) writeNew(path, text string) error {
	if _, err := os.Lstat(path); err == nil {
		return cmdline.Invalid(fmt.Sprintf("%s already exists", a.Workflows().Shown(path)), "to write another "+
			"file: -o FILE")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := durable.WriteFile(durable.OS(), path, []byte(text), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return cmdline.NotFound(fmt.Sprintf("directory not found: %s", a.Workflows().Shown(filepath.Dir(path))), "mkdir -p "+plaintext.Word(a.Workflows().Shown(filepath.Dir(path))))
	}
	return err
}

// stem returns a file's name without the extension of workflow files.
func stem(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
}

// typed returns a path in the form that is recognized as one.
func typed(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, ".") {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// Bounds of an import: how much is searched below a directory, and how much is reported on stderr. JSON has
// the complete report.
const (
	maxLookedAt = 10_000
	maxListed   = 100
)

type importOutput struct {
	Name       string           `json:"name"`
	Path       string           `json:"path"`
	Roles      []importedRole   `json:"roles"`
	NotCarried []subagents.Loss `json:"notCarried"`
}

type importedRole struct {
	Name       string `json:"name"`
	File       string `json:"file"`
	Permission string `json:"permission,omitempty"` // permission that its tools need
	Model      string `json:"model,omitempty"`
}

func (a Commands) workflowImportCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "import", Usage: "create a workflow from Claude Code subagents", ArgsUsage: "<file|directory…>",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "agents.yaml", Usage: "`FILE` output file or directory; - writes to stdout"},
		},
	}, a.workflowImport)
}

func (a Commands) workflowImport(ctx context.Context, c *ucli.Context) error {
	in := importer{Commands: a, lost: []subagents.Loss{}}
	for _, arg := range c.Args().Slice() {
		if err := in.add(ctx, arg); err != nil {
			return err
		}
	}
	if len(in.agents) == 0 {
		in.printSkipped()
		return cmdline.Invalid("no subagents in "+plaintext.Line(strings.Join(c.Args().Slice(), ", ")), "a subagent is a "+
			"Markdown file that starts with a frontmatter: ---, name: …, description: …, ---")
	}
	in.lost = append(in.lost, subagents.Names(in.agents)...)
	path, out := "", importOutput{Name: "agents", NotCarried: in.lost}
	if c.String("output") != "-" {
		path = a.newPath("agents", c.String("output"))
		out.Name, out.Path = stem(filepath.Base(path)), a.Workflows().Shown(path)
	}
	text, err := in.text(out.Name, path)
	if err != nil {
		return err
	}
	if path == "" {
		in.printSkipped()
		_, err = io.WriteString(a.Env.Stdout, text)
		return err
	}
	if err := a.writeNew(path, text); err != nil {
		return err
	}
	for _, agent := range in.agents {
		out.Roles = append(out.Roles, importedRole{Name: agent.Name, File: agent.File, Permission: agent.Permission, Model: agent.Model})
	}
	in.printSkipped()
	if err := a.Printf(out, "%s: written, with %s\n", plaintext.Line(out.Path), render.Count(len(out.Roles), "role")); err != nil {
		return err
	}
	a.Hint("the graph at the end of %s is only a chain; edit it", plaintext.Word(out.Path))
	a.Hint("uwf workflow validate %s", plaintext.Word(typed(out.Path)))
	return nil
}

// importer collects the subagents in the arguments.
type importer struct {
	Commands

	agents []subagents.Agent
	lost   []subagents.Loss
	looked int // number of files and directories
	bytes  int // size of all prompts
}

// add adds a file, or those in a directory: in its .claude/agents, if that exists.
func (in *importer) add(ctx context.Context, arg string) error {
	path := in.Env.Path(arg)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cmdline.NotFound("file not found: " + plaintext.Line(arg))
	case err != nil:
		return err
	case !info.IsDir():
		why, err := in.file(path, safeopen.Follow)
		if err == nil && why != "" {
			return cmdline.Invalid(in.shown(path) + " " + why)
		}
		return err
	}
	if own := filepath.Join(path, ".claude", "agents"); isDir(own) {
		path = own
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // an argument may be a link, but nothing below it
		return err
	}
	return filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if in.looked++; in.looked > maxLookedAt && err == nil {
			err = cmdline.Invalid(fmt.Sprintf("more than %d files below %s", maxLookedAt, plaintext.Line(arg)), "name the directory of the subagents, or the files")
		}
		switch {
		case err != nil:
			return err
		case at != path && d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir(), !strings.EqualFold(filepath.Ext(at), ".md"):
			return nil
		}
		why, err := in.file(at, safeopen.NoFollow)
		if why != "" {
			in.lost = append(in.lost, subagents.Loss{File: in.shown(at), Why: why})
		}
		return err
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (in *importer) shown(path string) string { return plaintext.Line(in.Workflows().Shown(path)) }

// file reads one file. why is the reason why it is not a subagent.
func (in *importer) file(path string, links safeopen.Links) (why string, err error) {
	data, err := safeopen.ReadFile(path, subagents.MaxFile, links)
	if other := (*safeopen.NotFileError)(nil); errors.As(err, &other) {
		return other.Reason(), nil
	}
	if err != nil {
		return plaintext.Line(err.Error()), nil //nolint:nilerr // reported by the caller
	}
	agent, lost, err := subagents.Parse(in.shown(path), data)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // reported by the caller
	}
	if in.bytes += len(agent.Prompt); in.bytes > subagents.MaxFile {
		return "", tooMuch()
	}
	in.agents, in.lost = append(in.agents, agent), append(in.lost, lost...)
	return "", nil
}

func tooMuch() error {
	return cmdline.Invalid("the subagents together exceed the size limit of a workflow file, "+render.Size(subagents.MaxFile), "import fewer of them at a time")
}

// text returns the workflow, validated as put does.
func (in *importer) text(name, path string) (string, error) {
	on := "agents.yaml"
	if path != "" {
		on = typed(in.Workflows().Shown(path))
	}
	text, err := subagents.Workflow(name, plaintext.Word(on), in.agents)
	if err != nil {
		return "", err
	}
	if len(text) > subagents.MaxFile {
		return "", tooMuch()
	}
	return text, checkNew(path, text)
}

// printSkipped lists what was not imported.
func (in *importer) printSkipped() {
	for i, l := range in.lost {
		if i == maxListed {
			in.Messagef("not imported: %d more; to list all: --json", len(in.lost)-i)
			return
		}
		place := l.File
		if l.Line > 0 {
			place += fmt.Sprintf(":%d", l.Line)
		}
		if l.Field != "" {
			place += ": " + l.Field
		}
		in.Messagef("not imported: %s", plaintext.Line(place+": "+l.Why))
	}
}

// YesFlag returns the flag that runs a remote workflow without a question.
func YesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "yes", Usage: "use a workflow from a git repository without prompting"}
}

type updateOutput struct {
	Address string `json:"address"`
	Commit  string `json:"commit"`
	Content string `json:"content"`
	Moved   bool   `json:"moved"`
}

func (a Commands) workflowUpdateCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "update", ArgsUsage: "<address>", Usage: "update the pinned version of a workflow from git",
		Flags: []ucli.Flag{YesFlag()},
	}, a.workflowUpdate)
}

func (a Commands) workflowUpdate(ctx context.Context, c *ucli.Context) error {
	text := c.Args().First()
	a.Yes = c.Bool("yes")
	at, git, lock, err := a.GitFile(text)
	if err != nil {
		return err
	}
	pin, pinned, err := lock.Find(at)
	if err != nil {
		return err
	}
	f, err := git.Fetch(ctx, at)
	if err != nil {
		return err
	}
	out := updateOutput{Address: text, Commit: f.Commit, Content: f.Content, Moved: !pinned || pin.Content != f.Content}
	if out.Moved || git.Confirmed(f.Content) == nil {
		shown := f.Text
		if before := git.Confirmed(pin.Content); pinned && before != nil {
			shown = []byte(strings.Join(workflowdiff.Lines(string(before), string(f.Text)), "\n"))
		}
		a.ShowFetched(at, f, shown)
		if err := a.ConfirmFetched(ctx, text); err != nil {
			return err
		}
		if err := git.Confirm(f); err != nil {
			return err
		}
	}
	if err := lock.Set(at, f); err != nil {
		return err
	}
	return a.Printf(out, "%s: commit %s, %s\n", plaintext.Line(text), f.Commit, f.Content)
}
