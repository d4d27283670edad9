package steps

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Extract is uwf step extract.
func (a Commands) Extract() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "extract", Usage: "for agents: have a model extract the role's data from an answer without frontmatter",
		Description: "The model is modelOverrides.extract, else models.extract, else defaultModel of config.yaml; " +
			"modelOverrides.extract: off switches it off. Agents made with the kit call this when their corrections have failed. " +
			"Nothing is stored: step put --final does both.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Usage: "`FILE` with the answer; - is stdin", Required: true},
		},
	}, a.stepExtract)
}

func (a Commands) stepExtract(ctx context.Context, c *ucli.Context) error {
	a.TextErrors = true
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	answer, err := a.readInput(c.String("output"))
	if err != nil {
		return err
	}
	_, brief, err := a.brief(ctx, as)
	if err != nil {
		return err
	}
	role, err := extract.NewRole(brief.Schema)
	if err != nil {
		return err
	}
	x, err := a.extractor(ctx)
	if err != nil {
		return err
	}
	if x.alias == "" {
		return cmdline.Invalid("no model for extraction: config.yaml names none", "uwf config set modelOverrides.extract <alias>")
	}
	out, usage, err := x.read(ctx, a.Secrets().Hide(answer), brief.Role.ExtractPrompt, role)
	said := protocol.Extraction{Value: out.Value, Model: x.alias, Usage: &usage}
	if err != nil {
		said.Value, said.Error = nil, err.Error()
	}
	return errors.Join(err, render.Print(a.Env.Stdout, render.JSON, said, nil))
}

// extractor is the model that reads answers.
type extractor struct {
	alias string // "": there is none
	model config.Endpoint
}

func (a Commands) extractor(ctx context.Context) (extractor, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return extractor{}, err
	}
	c, err := e.Config(ctx)
	if err != nil {
		return extractor{}, err
	}
	x := extractor{alias: config.ExtractModel(c)}
	if x.alias != "" {
		x.model, err = config.ResolveModel(c, x.alias, e.Env)
	}
	return x, err
}

// read asks the model once. The usage is also that of a failure.
func (x extractor) read(ctx context.Context, answer, heading string, role extract.Role) (extract.Output, protocol.Usage, error) {
	system, user := prompt.Extraction(heading, role.Schema, answer)
	text, usage, err := llm.Extractor(ctx, x.model, system, user, role.Schema)
	var out extract.Output
	if err == nil {
		out, err = extract.Reply(ctx, text, role)
	}
	if err != nil {
		return extract.Output{}, usage, fmt.Errorf("extraction by model %s: %w", x.alias, err)
	}
	return out, usage, nil
}
