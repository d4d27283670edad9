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

	"github.com/united-workforce/uwf/cmd/uwf/internal/subagents"
	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamltext"
)

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
	if out.Moved || git.Taken(f.Content) == nil {
		shown := f.Text
		if before := git.Taken(pin.Content); pinned && before != nil {
			shown = []byte(strings.Join(workflowdiff.Lines(string(before), string(f.Text)), "\n"))
		}
		a.ShowFetched(at, f, shown)
		if err := a.Take(ctx, text); err != nil {
			return err
		}
		if err := git.Take(f); err != nil {
			return err
		}
	}
	if err := lock.Set(at, f); err != nil {
		return err
	}
	return a.Printf(out, "%s: commit %s, %s\n", plaintext.Line(text), f.Commit, f.Content)
}
