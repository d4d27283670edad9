package threads

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

func (a Commands) threadListCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list threads, newest first",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Usage: "ended threads too"},
			&ucli.StringFlag{Name: "status", Usage: "only threads with these statuses, a comma-separated `LIST`; active stands for all that uwf can continue; running adds the process"},
			&ucli.StringFlag{Name: "after", Usage: "only threads started after `TIME`: a date, or 7d, 24h, 30m ago"},
			&ucli.StringFlag{Name: "before", Usage: "only threads started before `TIME`"},
			&ucli.StringFlag{Name: "limit", Aliases: []string{"take"}, Usage: "at most `N`"},
			&ucli.StringFlag{Name: "offset", Aliases: []string{"skip"}, Usage: "skip the first `N`", Value: "0"},
			remoteFlag("the threads at this `REMOTE`, as they stand there"),
		},
	}, a.threadList)
}

func (a Commands) listFilter(c *ucli.Context) (view.Filter, error) {
	f := view.Filter{Ended: c.Bool("all")}
	var err error
	if f.Statuses, err = statusList(c.String("status")); err != nil {
		return f, err
	}
	now := a.Env.Now()
	for _, bound := range []struct {
		flag string
		into *time.Time
	}{{"after", &f.After}, {"before", &f.Before}} {
		if !c.IsSet(bound.flag) {
			continue
		}
		if *bound.into, err = term.ParseTime(c.String(bound.flag), now, now.Location()); err != nil {
			return f, err
		}
	}
	if c.IsSet("limit") {
		if f.Limit, err = term.NumberFlag(c, "limit", 0, 20); err != nil {
			return f, err
		}
		if f.Limit == 0 {
			f.Limit = -1 // not one
		}
	}
	f.Offset, err = term.NumberFlag(c, "offset", 0, 20)
	return f, err
}

// statusList reads --status. "active" stands for what can be stepped, and "end"
// is the original's later word for completed.
func statusList(s string) ([]protocol.Status, error) {
	if s == "" {
		return nil, nil
	}
	known := Statuses()
	var list []protocol.Status
	for _, word := range strings.Split(s, ",") {
		switch st := protocol.Status(strings.TrimSpace(word)); {
		case st == "active":
			list = append(list, protocol.StatusIdle, protocol.StatusRunning, protocol.StatusError, protocol.StatusWaitingForChildren, protocol.StatusRateLimited)
		case st == "end":
			list = append(list, protocol.StatusCompleted)
		case slices.Contains(known, string(st)):
			list = append(list, st)
		default:
			return nil, unknownStatus(word, known)
		}
	}
	return list, nil
}

// Statuses are those that a thread can have.
func Statuses() []string {
	var names []string
	for _, s := range []protocol.Status{
		protocol.StatusIdle, protocol.StatusRunning, protocol.StatusWaitingForChildren, protocol.StatusRateLimited, protocol.StatusSuspended,
		protocol.StatusError, protocol.StatusCompleted, protocol.StatusCancelled, protocol.StatusCorrupt,
	} {
		names = append(names, string(s))
	}
	return names
}

func unknownStatus(word string, known []string) error {
	message := fmt.Sprintf("invalid status %q: want %s or active", word, strings.Join(known, ", "))
	renamed := map[string]protocol.Status{
		"failed": protocol.StatusError, "waiting": protocol.StatusWaitingForChildren, "parked": protocol.StatusRateLimited,
	}
	if now, ok := renamed[word]; ok {
		return cmdline.UsageError(message, fmt.Sprintf("it is --status %s now", now))
	}
	if near := suggest.Nearest(word, append(known, "active", "end"), 1); len(near) > 0 {
		return cmdline.UsageError(message, "did you mean --status "+near[0]+"?")
	}
	return cmdline.UsageError(message)
}

func (a Commands) threadList(ctx context.Context, c *ucli.Context) error {
	f, err := a.listFilter(c)
	if err != nil {
		return err
	}
	if c.IsSet("remote") {
		return a.listAt(ctx, c.String("remote"), f)
	}
	list, text := a.list, func(w io.Writer, items iter.Seq[protocol.ThreadItem], now time.Time) error {
		return listText(w, items, now, cmdline.Colours(a.Env, a.Env.Stdout))
	}
	if slices.Equal(f.Statuses, []protocol.Status{protocol.StatusRunning}) {
		list, text = a.running, runningText
	}
	items, err := list(ctx, f)
	if err != nil {
		return err
	}
	some := false
	told := func(yield func(protocol.ThreadItem) bool) {
		for item := range items {
			some = true
			if !yield(item) {
				return
			}
		}
	}
	err = render.PrintList(ctx, a.Env.Stdout, a.Format(nil), told, func(w io.Writer) error { return text(w, told, a.Env.Now()) })
	if err == nil && f.Statuses == nil && !f.Ended && f.Limit >= 0 && f.Offset == 0 && a.Format(nil) == render.Text {
		return a.sayEnded(ctx, f, some)
	}
	return err
}

// sayEnded says how many threads have ended and are not listed.
func (a Commands) sayEnded(ctx context.Context, f view.Filter, some bool) error {
	x, err := a.Index()
	if err != nil {
		return err
	}
	switch ended := view.Ended(ctx, x, f); {
	case ended > 0:
		a.Hint("%s: uwf thread list --all", render.Count(ended, "ended thread"))
	case !some:
		a.Hint("uwf run <workflow> -p '<task>'")
	}
	return nil
}

// list is the page that was asked for. It is read while it is walked through, once,
// and ends early when ctx does.
func (a Commands) list(ctx context.Context, f view.Filter) (iter.Seq[protocol.ThreadItem], error) {
	x, err := a.Index()
	if err != nil {
		return nil, err
	}
	entries := view.Listed(ctx, x, f, func(err error) {
		a.Say("uwf: %v", err) // one damaged line must not hide the other threads
		a.Status = app.Classify(err).Code
	})
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	if len(entries) > manyThreads {
		// What is kept is the list of threads; what is collected, all that is read of them.
		debug.SetGCPercent(100)
	}
	return view.Items(ctx, e, entries, f), nil
}

// manyThreads is from how many threads on memory counts more than time.
const manyThreads = 10_000

// rowsAtOnce is how many rows are aligned with each other: a list may be longer than
// should be in memory.
const rowsAtOnce = 1000

func listText(w io.Writer, items iter.Seq[protocol.ThreadItem], now time.Time, colours bool) error {
	t, some := term.NewTable("THREAD", "STATUS", "WORKFLOW", "NEXT", "STARTED", "COST", "TITLE").InColour(colours), false
	for it := range items {
		name := string(it.Workflow)
		if it.WorkflowName != nil {
			name = *it.WorkflowName
		}
		next := ""
		if role := cmp.Or(it.CurrentRole, it.SuspendedRole); role != nil {
			next = *role
		}
		id, cost := it.Thread, ""
		if !it.Imported {
			id = app.Shortened(id)
		}
		if sum := it.Totals; sum != nil && sum.Usage != nil {
			cost = term.Dollars(sum.Usage, sum.StepsWithoutCost)
		}
		t.Row(id, string(it.Status), name, next, app.Started(it.StartedAt, now), cost, app.TitleText(it.Title, it.ForkedFrom))
		if some = true; len(t.Rows) == rowsAtOnce {
			if err := t.Print(w); err != nil {
				return err
			}
		}
	}
	if !some {
		_, err := fmt.Fprintln(w, "no active threads")
		return err
	}
	return t.Print(w)
}
