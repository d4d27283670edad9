package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
	"github.com/united-workforce/uwf/util/plaintext"
)

func (a *app) stepReadCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "read", ArgsUsage: "<step>", Usage: "read the turns of a step as Markdown, the newest that fit",
		Description: stepUsage,
		Flags: []ucli.Flag{
			quotaFlag(),
			&ucli.BoolFlag{Name: "prompt", Usage: "the prompt that the agent was given, instead of its turns"},
		},
	}, a.stepRead)
}

func (a *app) stepRead(ctx context.Context, c *ucli.Context) error {
	quota, err := quotaOf(c)
	if err != nil {
		return err
	}
	h, step, err := a.stepNode(ctx, c.Args().First())
	if err != nil {
		return err
	}
	s, err := a.store(ctx)
	if err != nil {
		return err
	}
	header := fmt.Sprintf("# Step %s\n\n**Role:** %s\n**Agent:** %s", h, plaintext.Line(step.Role), plaintext.Line(step.Agent))
	text := ""
	if c.Bool("prompt") {
		text, err = promptOf(ctx, s, step)
	} else {
		text, err = turnsOf(ctx, s, step, quota-length(header)-1)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.env.Stdout, header+text+"\n")
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

// omittedTurns is said when not all turns fit.
const omittedTurns = "\n\n_[Earlier turns omitted due to quota. Use --quota to increase.]_"

// turnsOf renders the newest turns that fit. The newest one is cut if it alone is
// too long.
func turnsOf(ctx context.Context, s cas.Store, step protocol.Step, quota int) (string, error) {
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
	for i := len(detail.Turns) - 1; i >= 0; i-- {
		turn, err := thread.ShownTurn(ctx, s, detail.Turns[i])
		if err != nil {
			return "", err
		}
		if turn.Role == thread.Redacted {
			turn.Index = i
		}
		block, note := turnBlock(turn), 0
		if i > 0 {
			note = length(omittedTurns) // there may be one more that does not fit
		}
		room := quota - used - note
		switch {
		case length(block) <= room:
		case len(blocks) == 0:
			block = cutMiddle(block, room, leftOut)
		default:
			return omittedTurns + joinReversed(blocks), nil
		}
		used += length(block)
		blocks = append(blocks, block)
	}
	return joinReversed(blocks), nil
}

// turnBlock is one turn; a turn that says and does nothing is left out.
func turnBlock(t protocol.Turn) string {
	if strings.TrimSpace(t.Content) == "" && len(t.ToolCalls) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n## Turn %d\n\n**Turn role:** %s", t.Index+1, plaintext.Line(string(t.Role)))
	for _, call := range t.ToolCalls {
		args, err := json.Marshal(call.Args)
		if err != nil { // it came from the store, so it is JSON
			args = []byte("?")
		}
		fmt.Fprintf(&b, "\n- **%s** — `%s`", plaintext.Line(call.Name), args)
	}
	if t.Content != "" {
		b.WriteString("\n\n")
		b.WriteString(fence.Said(t.Content))
	}
	return b.String()
}

func joinReversed(blocks []string) string {
	var b strings.Builder
	for i := len(blocks) - 1; i >= 0; i-- {
		b.WriteString(blocks[i])
	}
	return b.String()
}
