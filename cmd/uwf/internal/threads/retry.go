package threads

import (
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// threadRetryCommand is uwf thread retry, and the original's poke.
func (a Commands) threadRetryCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "retry", Aliases: []string{"poke"}, ArgsUsage: "<thread|step>",
		Usage: "run a step or a child again, with -p after new instructions",
		Description: "A thread whose next step failed tries that step again. Otherwise a new step takes the place of the\n" +
			"last one, or of the step that you name; what is next follows from it, also if the thread was completed.\n" +
			"Without -p the role gets the same instructions. The old step stays in the store until uwf cas gc; uwf\n" +
			"thread fork <step> continues from it. The agent begins with the files from before that step, if they\n" +
			"were kept. Steps that followed an earlier step are undone; if the new step fails, uwf thread redo\n" +
			"restores them.\n\n" +
			"A child runs again from its start, unless its parent has joined its result; with -p its last step runs\n" +
			"again. uwf thread resume of the parent then continues.\n\n" +
			"   uwf thread retry @ -p 'shorter'\n" +
			"   uwf thread retry @developer -p 'keep the old name' --until-end   # the last step of a role\n" +
			"   uwf thread retry @/security",
		Flags: append(append(agentFlags(), keepFilesFlag(), promptFlag(false, "new instructions, as `TEXT`; - reads it from stdin, @FILE from a file")),
			append(countFlags(), remoteFlags()...)...),
	}, a.threadRetry)
}

func (a Commands) threadRetry(ctx context.Context, c *ucli.Context) error {
	w, err := a.workOf(c)
	if err != nil {
		return err
	}
	parent, key, child := app.CutChild(c.Args().First())
	if child && !c.IsSet("prompt") {
		return a.retryChild(ctx, parent, key)
	}
	w.Do = engine.DoPoke
	if c.IsSet("prompt") {
		if w.Prompt, err = a.promptText(c.String("prompt")); err != nil {
			return err
		}
		if strings.TrimSpace(w.Prompt) == "" {
			return cmdline.UsageError("the prompt is empty", "-p 'new instructions'")
		}
	} else if strings.LastIndex(c.Args().First(), app.Newest) <= 0 { // not <thread>@<step>
		if id, e, err := a.threadHere(ctx, c); err == nil {
			if at, err := e.Show(ctx, id); err == nil && at.Status == protocol.StatusError {
				w.Do, w.Wake = engine.DoStep, true
			}
		}
	}
	return a.work(ctx, c, w)
}

// retryChild discards what a child has answered.
func (a Commands) retryChild(ctx context.Context, parent, key string) error {
	id, err := a.Thread(ctx, parent)
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if err := e.Again(ctx, id, key); err != nil {
		return err
	}
	at, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	out := protocol.ChildAgain{Parent: id, Hint: "uwf thread resume " + id}
	for _, c := range at.Children {
		if c.Key == key {
			out.ChildOutput = c
		}
	}
	return a.Print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "child %s: %s, will run again\nhint: %s\n", children.Named(out.Key, out.Label), out.Status, out.Hint)
		return err
	})
}
