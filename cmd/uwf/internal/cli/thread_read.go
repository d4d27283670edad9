package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
)

// defaultQuota is how many characters a reader gets without asking for more.
const defaultQuota = 4000

func quotaFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "quota", Usage: "at most `N` characters; the newest text wins", Value: strconv.Itoa(defaultQuota)}
}

func quotaOf(c *ucli.Context) (int, error) {
	n, err := numberFlag(c, "quota", 1, defaultQuota)
	var coded *protocol.Error
	if errors.As(err, &coded) { // in the original's words
		coded.Message = "invalid --quota: must be a positive integer, got: " + c.String("quota")
	}
	return n, err
}

func (a *app) threadReadCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "read", ArgsUsage: "<thread>", Usage: "read a whole run as Markdown: task, instructions, answers, decisions",
		Description: "On a terminal it is all there. Elsewhere it has at most as many characters as the quota says, and the\n" +
			"newest steps win; --all leaves nothing out.\n\n" +
			"The text has at most as many characters as the quota says; only the headings of the newest\n" +
			"step, and that its answer is left out, are always there. A step that alone is too long is cut in its middle, and says so.",
		Flags: []ucli.Flag{
			quotaFlag(),
			&ucli.BoolFlag{Name: "all", Usage: "leave nothing out, in a pipe too"},
			&ucli.StringFlag{Name: "before", Usage: "only steps before this `STEP`: a hash, a number, -1 for the last, a role, role@visit"},
			&ucli.BoolFlag{Name: "start", Usage: "include the task, even with --before"},
			&ucli.BoolFlag{Name: "live", Usage: "include the turns of the running step or the failed try, and what is being written"},
		},
	}, a.threadRead)
}

func (a *app) threadRead(ctx context.Context, c *ucli.Context) error {
	quota, err := quotaOf(c)
	if err != nil {
		return err
	}
	if c.Bool("all") && c.IsSet("quota") {
		return cmdline.UsageError("--all and --quota exclude each other")
	}
	if c.Bool("all") || !c.IsSet("quota") && a.onTerminal() {
		quota = math.MaxInt32
	}
	if c.IsSet("before") && c.Bool("live") {
		return cmdline.UsageError("--before and --live exclude each other: what is running comes after every step")
	}
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	var flight *engine.Flight
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
	r, err := a.reader(ctx, e, id, flight)
	if err != nil {
		return err
	}
	r.quota = quota - 1 // for the line break at the end
	q := request{start: !c.IsSet("before") || c.Bool("start")}
	if !c.IsSet("before") && flight == nil {
		if at, err := e.Show(ctx, id); err == nil { // else what can be read is read
			q.ending = endingOf(at)
		}
	}
	if c.IsSet("before") {
		step, err := a.addressIn(ctx, id, c.String("before"))
		if err != nil {
			return err
		}
		if r.thread, err = a.upTo(ctx, r.thread, id, step); err != nil {
			return err
		}
	}
	if flight != nil {
		if q.newest, err = r.flightBlock(ctx, *flight, a.env.Now()); err != nil {
			return err
		}
	}
	text, err := r.read(ctx, q)
	if err != nil {
		return err
	}
	if f := a.flags.format; f != "" && f != string(render.Text) { // asked for: by itself it is Markdown everywhere
		return a.print(protocol.ThreadText{Thread: id, Markdown: text}, nil)
	}
	_, err = io.WriteString(a.env.Stdout, text+"\n")
	return err
}

// upTo is the thread as it was before a step, which must be one of its own. It
// reads the steps from the head back to that, once.
func (a *app) upTo(ctx context.Context, t *thread.Thread, id string, before cas.Hash) (*thread.Thread, error) {
	if before == t.StartHash {
		return a.openThread(ctx, before)
	}
	for step, err := range t.Steps(ctx) {
		switch {
		case err != nil:
			return nil, err
		case step.Hash != before:
		case step.Prev == nil:
			return a.openThread(ctx, t.StartHash)
		default:
			return a.openThread(ctx, *step.Prev)
		}
	}
	return nil, cmdline.NotFound(fmt.Sprintf("step %s not found in thread %s", before, id), "uwf thread steps "+id)
}

// reader opens a thread for reading: as it was when the step in flight began, if
// there is one.
func (a *app) reader(ctx context.Context, e *engine.Engine, id string, flight *engine.Flight) (reader, error) {
	head, err := e.Head(ctx, id)
	if err != nil {
		return reader{}, err
	}
	if flight != nil {
		head = flight.Head
	}
	t, err := a.openThread(ctx, head)
	if err != nil {
		return reader{}, err
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return reader{}, err
	}
	return reader{store: e.Store, thread: t, id: id, workflow: wf}, nil
}
