package workflows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamltext"
)

// newOutput answers workflow new.
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
		Name: "new", Aliases: []string{"init"}, Usage: "write a workflow file to begin with", ArgsUsage: "<name>",
		Description: "Writes <name>.yaml, a workflow that runs as it is and explains itself. A file that exists\n" +
			"is never overwritten. The templates:\n\n" + strings.TrimRight(list.String(), "\n"),
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "template", Aliases: []string{"t"}, Value: templates.Names()[0], Usage: "`NAME` of the template"},
			&ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` or directory to write to; - is stdout"},
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
	if c.String("output") == "-" {
		if err := checkNew(name, "", text); err != nil {
			return err
		}
		_, err := io.WriteString(a.Env.Stdout, text)
		return err
	}
	path := a.newPath(name, c.String("output"))
	if err := checkNew(name, path, text); err != nil {
		return err
	}
	if err := a.writeNew(path, text); err != nil {
		return err
	}
	out := newOutput{Name: name, Template: template, Path: a.Workflows().Shown(path)}
	if err := a.Print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: written from the template %s\n", out.Path, template)
		return err
	}); err != nil {
		return err
	}
	a.Hint("uwf workflow graph %s", plaintext.Word(typed(out.Path)))
	a.Hint("uwf run %s -p '<task>'", plaintext.Word(typed(out.Path)))
	return nil
}

// newWorkflow fills a template in.
func newWorkflow(name, template string) (string, error) {
	known := false
	for _, t := range templates.Names() {
		known = known || t == template
	}
	if !known {
		hints := []string{"one of " + strings.Join(templates.Names(), ", ")}
		if near := suggest.Nearest(template, templates.Names(), 1); len(near) > 0 {
			hints = append([]string{"did you mean --template " + near[0] + "?"}, hints...)
		}
		return "", cmdline.NotFound(fmt.Sprintf("template not found: %s", template), hints...)
	}
	quoted, err := yamltext.Marshal(name)
	if err != nil {
		return "", err
	}
	return templates.Text(template, name, strings.TrimSuffix(string(quoted), "\n"))
}

// newPath is where the file goes: beside us, into the directory, or to the file
// that was named.
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

// checkNew reads the text as put would: the name may be one that a workflow
// cannot have, or not the file's.
func checkNew(name, path, text string) error {
	_, err := workflow.Parse(workflow.Source{Path: path, Data: []byte(text)})
	var problems *workflow.Problems
	if !errors.As(err, &problems) {
		return err
	}
	p := problems.List[0]
	out := &protocol.Error{
		Code: protocol.CodeUsage, Message: fmt.Sprintf("cannot write a workflow named %q: %s", name, p.Message), Err: err,
	}
	if p.Remedy != "" {
		out.Hints = []string{p.Remedy}
	}
	return out
}

func (a Commands) writeNew(path, text string) error {
	if _, err := os.Lstat(path); err == nil {
		return cmdline.Invalid(fmt.Sprintf("%s exists already", a.Workflows().Shown(path)), "choose another name, or another place with -o")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := durable.WriteFile(durable.OS(), path, []byte(text), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return cmdline.NotFound(fmt.Sprintf("directory not found: %s", a.Workflows().Shown(filepath.Dir(path))), "mkdir -p "+plaintext.Word(a.Workflows().Shown(filepath.Dir(path))))
	}
	return err
}

// stem is a file's name without the ending of workflow files.
func stem(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
}

// typed is a path as it must be typed to be taken for one.
func typed(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, ".") {
		return path
	}
	return "." + string(filepath.Separator) + path
}
