package threads

import (
	"context"
	"fmt"
	"io"
	"math"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadReadCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "read", ArgsUsage: "<thread>", Usage: "read a whole run as Markdown: task, instructions, answers, decisions",
		Description: "On a terminal it is all there. Elsewhere it has at most as many characters as the quota says, and the\n" +
			"newest steps win; --all leaves nothing out.\n\n" +
			"The text has at most as many characters as the quota says; only the headings of the newest\n" +
			"step, and that its answer is left out, are always there. A step that alone is too long is cut in its middle, and says so.",
		Flags: []ucli.Flag{
			app.QuotaFlag(),
			&ucli.BoolFlag{Name: "all", Usage: "leave nothing out, in a pipe too"},
			&ucli.StringFlag{Name: "before", Usage: "only steps before this `STEP`: a hash, a number, -1 for the last, a role, role@visit"},
			&ucli.BoolFlag{Name: "start", Usage: "include the task, even with --before"},
			&ucli.BoolFlag{Name: "live", Usage: "include the turns of the running step or the failed try, and what is being written"},
		},
	}, a.threadRead)
}

func (a Commands) threadRead(ctx context.Context, c *ucli.Context) error {
	quota, err := app.QuotaOf(c)
	if err != nil {
		return err
	}
	if c.Bool("all") && c.IsSet("quota") {
		return cmdline.UsageError("--all and --quota exclude each other")
	}
	if c.Bool("all") || !c.IsSet("quota") && a.OnTerminal() {
		quota = math.MaxInt32
	}
	if c.IsSet("before") && c.Bool("live") {
		return cmdline.UsageError("--before and --live exclude each other: what is running comes after every step")
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	var flight *status.Flight
	if c.Bool("live") {
		if flight, err = e.Flight(ctx, id); err != nil {
			return err
		}
		if flight == nil {
			if flight, err = e.Tried(ctx, id); err != nil {
				return err
			}
		}
	}
	r, err := a.Reader(ctx, e, id, flight)
	if err != nil {
		return err
	}
	r.Quota = quota - 1 // for the line break at the end
	q := transcript.Request{Start: !c.IsSet("before") || c.Bool("start")}
	if !c.IsSet("before") && flight == nil {
		if at, err := e.Show(ctx, id); err == nil { // otherwise what can be read is read
			q.Ending = transcript.EndingOf(at)
		}
	}
	if c.IsSet("before") {
		step, err := a.AddressIn(ctx, id, c.String("before"))
		if err != nil {
			return err
		}
		if r.Thread, err = a.upTo(ctx, r.Thread, id, step); err != nil {
			return err
		}
	}
	if flight != nil {
		if q.Newest, err = r.FlightBlock(ctx, *flight, a.Env.Now()); err != nil {
			return err
		}
	}
	text, err := r.Read(ctx, q)
	if err != nil {
		return err
	}
	if f := a.Flags.Format; f != "" && f != string(render.Text) { // asked for: by itself it is Markdown everywhere
		return a.Print(protocol.ThreadText{Thread: id, Markdown: text}, nil)
	}
	_, err = io.WriteString(a.Env.Stdout, text+"\n")
	return err
}

// upTo is the thread as it was before a step, which must be one of its own. It
// reads the steps from the head back to that, once.
func (a Commands) upTo(ctx context.Context, t *thread.Thread, id string, before cas.Hash) (*thread.Thread, error) {
	if before == t.StartHash {
		return a.OpenThread(ctx, before)
	}
	for step, err := range t.Steps(ctx) {
		switch {
		case err != nil:
			return nil, err
		case step.Hash != before:
		case step.Prev == nil:
			return a.OpenThread(ctx, t.StartHash)
		default:
			return a.OpenThread(ctx, *step.Prev)
		}
	}
	return nil, cmdline.NotFound(fmt.Sprintf("step %s not found in thread %s", before, id), "uwf thread steps "+id)
}
