package workflows

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
)

// formatGitHub is the form of a report that only workflow validate has.
const formatGitHub = "github"

// ValidateFormats are those of uwf workflow validate.
func ValidateFormats() []string {
	return []string{"text", "json", "yaml", formatGitHub}
}

func (a Commands) workflowValidateCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "validate", Aliases: []string{"check"}, Usage: "report every problem in workflow files; store nothing",
		ArgsUsage: "<file.yaml…>",
		Description: "Exit status 0: all files are valid; 4: at least one is not.\n\n" +
			"github is for the log of a GitHub workflow,\n" +
			"where the problems appear beside the lines of the change.",
		Flags: []ucli.Flag{app.FormatFlag(ValidateFormats(), "text on a terminal, else json")},
	}, a.workflowValidate)
}

func (a Commands) workflowValidate(ctx context.Context, c *ucli.Context) error {
	format, err := a.OwnFormat(c, ValidateFormats())
	if err != nil {
		return err
	}
	files := c.Args().Slice()
	all, valid, err := a.problems(ctx, files)
	if err != nil {
		return err
	}
	result := protocol.Validation{Valid: all == nil, Errors: []string{}}
	if all != nil {
		result.Problems = all.List
	}
	for _, p := range result.Problems {
		result.Errors = append(result.Errors, fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message))
	}
	printErr := a.printValidation(format, result, valid)
	if all == nil {
		return printErr
	}
	if format == formatGitHub { // stdout says it all
		return errors.Join(printErr, cmdline.Invalid(render.Count(len(all.List), "problem")+" in "+render.Count(len(files)-len(valid), "file")))
	}
	a.TextErrors = true // stdout has them as data
	return errors.Join(printErr, all)
}

// problems reads all files. It returns what is wrong with them, nil if nothing
// is, and those that are valid.
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

func (a Commands) printValidation(format string, result protocol.Validation, valid []string) error {
	if format == formatGitHub {
		return writeAnnotations(a.Env.Stdout, result.Problems)
	}
	return a.Print(result, func(w io.Writer) error {
		for _, file := range valid { // stderr says what is wrong with the others
			if _, err := fmt.Fprintf(w, "%s: valid\n", file); err != nil {
				return err
			}
		}
		return nil
	})
}
