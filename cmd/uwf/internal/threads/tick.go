package threads

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// tickOutput answers run-due.
type tickOutput struct {
	Threads []engine.Ticked `json:"threads"`
}

// Tick is uwf run-due.
func (a Commands) Tick() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "run-due", Usage: "make one step of every thread that can go on",
		Description: "For cron, systemd and CI. It skips threads that wait for a person, failed, were undone, are\n" +
			"rate-limited or running; uwf inbox lists those that need a person. Exits 0 if there is nothing to do, else\n" +
			"with the status of the first step that failed.\n\n" +
			"   */5 * * * * uwf run-due --parallel 4",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "parallel", Usage: "work on up to `N` threads at once", Value: "1"},
			term.TimeoutFlag("stop a step's agent after this `TIME`"),
		},
	}, func(ctx context.Context, c *ucli.Context) error {
		n, err := term.NumberFlag(c, "parallel", 1, 4)
		if err != nil {
			return err
		}
		o, err := a.stepOptions(c)
		if err != nil {
			return err
		}
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		a.FlushNotices(e)
		out := tickOutput{Threads: []engine.Ticked{}}
		err = e.Tick(ctx, n, o, func(t engine.Ticked) {
			out.Threads = append(out.Threads, t)
			a.Say("thread %s: %s", t.Thread, tickText(t))
			if t.Error != nil && a.Status == "" {
				a.Status = t.Error.Code
			}
		})
		if printErr := a.Print(out, func(w io.Writer) error {
			failed := 0
			for _, t := range out.Threads {
				if t.Error != nil {
					failed++
				}
			}
			text := render.Count(len(out.Threads)-failed, "thread") + " went on"
			if failed > 0 {
				text += fmt.Sprintf(", %d failed", failed)
			}
			_, err := fmt.Fprintln(w, text)
			return err
		}); printErr != nil {
			return printErr
		}
		return err
	})
}

func tickText(t engine.Ticked) string {
	role := ""
	if t.Output.Role != nil {
		role = *t.Output.Role + ": "
	}
	if t.Error != nil {
		return plaintext.Line(role + t.Error.Message)
	}
	if t.Output.Status == protocol.StatusSuspended {
		return plaintext.Line(role + app.StatusText(t.Output))
	}
	return plaintext.Line(role + app.StandingText(t.Output))
}
