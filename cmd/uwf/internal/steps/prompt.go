package steps

import (
	"context"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/suggest"
)

// Prompt is uwf step prompt.
func (a Commands) Prompt() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "prompt", Usage: "for agents: print the prompt of this step",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "part", Usage: "`PART` of it: all, system (the same for all of a role's visits) or user (the rest)", Value: "all"},
		},
	}, a.stepPrompt)
}

func (a Commands) stepPrompt(ctx context.Context, c *ucli.Context) error {
	part, ok := map[string]func(prompt.Parts) string{
		"all": prompt.Full, "system": prompt.System, "user": prompt.User,
	}[c.String("part")]
	if !ok {
		var hints []string
		if near := suggest.Nearest(c.String("part"), []string{"all", "system", "user"}, 1); len(near) > 0 {
			hints = append(hints, "did you mean --part "+near[0]+"?")
		}
		return cmdline.UsageError("--part must be all, system or user, got: "+c.String("part"), hints...)
	}
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	_, brief, err := a.brief(ctx, as)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Env.Stdout, part(brief.Parts)+"\n")
	return err
}
