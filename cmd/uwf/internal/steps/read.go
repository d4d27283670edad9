package steps

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Read is uwf step read.
func (a Commands) Read() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "read", ArgsUsage: "<step>", Usage: "read the turns of a step as Markdown, the newest that fit",
		Description: app.StepUsage,
		Flags: []ucli.Flag{
			app.QuotaFlag(),
			&ucli.BoolFlag{Name: "prompt", Usage: "the prompt that the agent was given, instead of its turns"},
		},
	}, a.stepRead)
}

func (a Commands) stepRead(ctx context.Context, c *ucli.Context) error {
	quota, err := app.QuotaOf(c)
	if err != nil {
		return err
	}
	h, step, err := a.stepNode(ctx, c.Args().First())
	if err != nil {
		return err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	header := fmt.Sprintf("# Step %s\n\n**Role:** %s\n**Agent:** %s", h, plaintext.Line(step.Role), plaintext.Line(step.Agent))
	text := ""
	if c.Bool("prompt") {
		text, err = promptOf(ctx, s, step)
	} else {
		text, err = turnsOf(ctx, s, step, quota-term.Length(header)-1, a.Quoting())
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Env.Stdout, header+text+"\n")
	return err
}

// promptOf is the prompt as it was assembled.
func promptOf(ctx context.Context, s cas.Store, step protocol.Step) (string, error) {
	if step.Prompt == nil {
		return "\n\n## Prompt\n\n_Prompt not recorded._", nil
	}
	text, err := cas.Read[protocol.Text](ctx, s, *step.Prompt)
	if redacted, ok := cas.AsRedacted(err); ok {
		return "\n\n## Prompt\n\n_" + redacted.Mark() + "_", nil
	}
	return "\n\n## Prompt\n\n" + string(text), err
}

// turnsOf renders the newest turns that fit. The newest one is cut if it alone is
// too long.
func turnsOf(ctx context.Context, s cas.Store, step protocol.Step, quota int, quoting transcript.Quoting) (string, error) {
	detail, err := cas.Read[protocol.Detail](ctx, s, step.Detail)
	var other *cas.TypeError
	if errors.As(err, &other) && s.Algorithm() == cas.XXH64 {
		return "\n\n_The detail is one that only its agent knows: uwf step show has it._", nil
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		return "\n\n_" + redacted.Mark() + "_", nil
	}
	if err != nil {
		return "", err
	}
	var blocks []string // newest first
	used := 0
	for i := len(detail.Turns) - 1; i >= 0 && used <= quota; i-- {
		turn, err := thread.ShownTurn(ctx, s, detail.Turns[i])
		if err != nil {
			return "", err
		}
		if turn.Role == thread.Redacted {
			turn.Index = i
		}
		blocks = append(blocks, quoting.TurnBlock(turn))
		used += term.Length(blocks[len(blocks)-1])
	}
	if used <= quota {
		return transcript.JoinReversed(blocks), nil
	}
	note := ""
	if len(detail.Turns) > 1 {
		note = transcript.OmittedTurns
	}
	room := quota - term.Length(note)
	for ; len(blocks) > 1 && used > room; blocks = blocks[:len(blocks)-1] {
		used -= term.Length(blocks[len(blocks)-1])
	}
	if len(blocks) == 1 {
		blocks[0] = transcript.CutMiddle(blocks[0], room, transcript.LeftOut)
	}
	return note + transcript.JoinReversed(blocks), nil
}
