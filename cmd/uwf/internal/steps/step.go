package steps

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
)

// Details is the seeds' command: the whole detail as YAML.
func (a Commands) Details() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "step-details", ArgsUsage: "<step>", Usage: "print everything that happened inside a step, as YAML",
		Description: app.StepUsage,
	}, func(ctx context.Context, c *ucli.Context) error {
		detail, err := a.expandDetail(ctx, c.Args().First())
		if err != nil {
			return err
		}
		own := render.YAML
		return render.Print(a.Env.Stdout, a.Format(&own), detail, nil)
	})
}

// expandDetail is a step's detail with every reference replaced by its content.
func (a Commands) expandDetail(ctx context.Context, arg string) (any, error) {
	_, step, err := a.stepNode(ctx, arg)
	if err != nil {
		return nil, err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	return cas.Expand(ctx, s, step.Detail, -1)
}

// stepNode reads the step that a person means.
func (a Commands) stepNode(ctx context.Context, arg string) (cas.Hash, protocol.Step, error) {
	h, err := a.Address(ctx, arg)
	if err != nil {
		return "", protocol.Step{}, err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return "", protocol.Step{}, err
	}
	step, err := cas.Read[protocol.Step](ctx, s, h)
	var kind *cas.TypeError
	if errors.As(err, &kind) {
		step, err = originalStep(ctx, s, h)
	}
	return h, step, err
}

// originalStep reads a step that may be the original's: its place follows from
// the chain.
func originalStep(ctx context.Context, s cas.Store, h cas.Hash) (protocol.Step, error) {
	t, err := thread.Open(ctx, s, h)
	var kind *cas.TypeError
	if errors.As(err, &kind) || err == nil && t.Last == nil {
		return protocol.Step{}, cmdline.Invalid(fmt.Sprintf("node %s is not a step", h), "uwf thread steps <thread>")
	}
	if err != nil {
		return protocol.Step{}, err
	}
	return t.Last.Step, nil
}
