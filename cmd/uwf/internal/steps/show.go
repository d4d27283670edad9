package steps

import (
	"context"
	"maps"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

// Show is the original's later name, with what the step says of itself
// beside what happened in it.
func (a Commands) Show() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "show", ArgsUsage: "<step>", Usage: "print a step: its agent, its output, and everything that happened inside",
		Description: app.StepUsage,
	}, a.stepShow)
}

// stepShown answers step show.
type stepShown struct {
	Hash          protocol.Hash        `json:"hash"`
	Index         int                  `json:"index"`  // from 0, as the node has it
	Number        int                  `json:"number"` // from 1, as in <thread>@3
	Role          string               `json:"role"`
	Agent         string               `json:"agent"`
	Status        string               `json:"status"` // that routed; "" if none did
	StartedAtMs   int64                `json:"startedAtMs"`
	CompletedAtMs int64                `json:"completedAtMs"`
	DurationMs    int64                `json:"durationMs"`
	Usage         *protocol.Usage      `json:"usage"` // null: unknown
	SessionID     string               `json:"sessionId"`
	EdgePrompt    string               `json:"edgePrompt"`
	Cwd           string               `json:"cwd"`
	ExtractedBy   protocol.ExtractedBy `json:"extractedBy"`
	Files         *protocol.Files      `json:"files,omitempty"`
	Changes       *protocol.FileTotals `json:"changes,omitempty"`
	Frontmatter   any                  `json:"frontmatter"` // what it delivered
	Turns         any                  `json:"turns"`
	Detail        any                  `json:"detail"` // the rest of it
}

func (a Commands) stepShow(ctx context.Context, c *ucli.Context) error {
	h, step, err := a.stepNode(ctx, c.Args().First())
	if err != nil {
		return err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	t, err := thread.Open(ctx, s, h)
	if err != nil {
		return err
	}
	out, err := t.Shown(ctx, thread.Step{Hash: h, Step: step})
	if err != nil {
		return err
	}
	if step.SessionID, err = thread.SessionID(ctx, s, step); err != nil {
		return err
	}
	detail, err := cas.Expand(ctx, s, step.Detail, -1)
	if err != nil {
		return err
	}
	shown := stepShown{
		Hash: h, Index: step.Index, Number: step.Index + 1, Role: step.Role, Agent: step.Agent, Status: view.StatusOf(out.Value),
		StartedAtMs: step.StartedAtMs, CompletedAtMs: step.CompletedAtMs, DurationMs: step.CompletedAtMs - step.StartedAtMs,
		Usage: step.Usage, SessionID: step.SessionID, EdgePrompt: step.EdgePrompt, Cwd: step.Cwd,
		ExtractedBy: step.ExtractedBy, Files: step.Files, Frontmatter: out.Value, Detail: detail,
	}
	if step.Files != nil {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		if sum, ok := e.Files().Totals(ctx, h, 1)[h]; ok {
			shown.Changes = &sum
		}
	}
	if m, ok := detail.(map[string]any); ok {
		rest := maps.Clone(m)
		shown.Turns = rest["turns"]
		nameArgs(shown.Turns)
		delete(rest, "turns")
		shown.Detail = rest
	}
	return a.Print(shown, nil)
}

// nameArgs gives the arguments of tool calls the one name that they have here: the
// original's Claude Code agent called them input.
func nameArgs(turns any) {
	list, _ := turns.([]any)
	for _, turn := range list {
		fields, _ := turn.(map[string]any)
		calls, _ := fields["toolCalls"].([]any)
		for _, c := range calls {
			call, _ := c.(map[string]any)
			input, old := call["input"]
			if _, has := call["args"]; old && !has {
				call["args"] = input
				delete(call, "input")
			}
		}
	}
}
