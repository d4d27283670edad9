package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a commands) logCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "log", Usage: "the log: which step ran when, with which agent, and how it ended",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "list the log's files, newest day first",
			}, a.logList),
			a.Leaf(ucli.Command{
				Name: "show", Usage: "print the log, oldest entry first",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: "thread", Usage: "only entries of this `THREAD`"},
					&ucli.StringFlag{Name: "process", Usage: "only entries of the process with this `PID`"},
					&ucli.StringFlag{Name: "date", Usage: "only entries of this `DAY`, such as 2026-11-21 (UTC)"},
					term.Number(ucli.StringFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most the `N` newest"}, 1, 20),
				},
			}, a.logShow),
			a.Leaf(ucli.Command{
				Name: "clean", Usage: "remove the log of all days before one",
				Flags: []ucli.Flag{&ucli.StringFlag{Name: "before", Required: true, Usage: "the first `DAY` to keep: a date, or 30d for thirty days ago"}},
			}, a.logClean),
		},
	})
}

func (a commands) logList(context.Context, *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	files, err := eventlog.Files(dirs.Logs())
	if err != nil {
		return err
	}
	return a.Print(files, func(w *term.Page) {
		if len(files) == 0 {
			w.Printf("the log is empty\n")
			return
		}
		t := term.NewTable("DATE", "BYTES", "FILE")
		for _, f := range files {
			t.Row(f.Date, view.Thousands(f.Size), f.Name)
		}
		w.Table(t)
	})
}

func (a commands) logShow(ctx context.Context, c *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	f, unknown, err := a.logFilter(ctx, c)
	if err != nil {
		return err
	}
	entries, bad, err := eventlog.Read(dirs.Logs(), f)
	if err != nil {
		return err
	}
	if len(entries) == 0 && unknown != nil { // a forgotten thread may still be in the log
		return unknown
	}
	if bad > 0 {
		a.Say("uwf: %d lines of the log cannot be read", bad)
	}
	if limit := term.NumberOf(c, "limit"); limit > 0 {
		entries = entries[max(0, len(entries)-limit):]
	}
	return a.printLog(entries)
}

// logFilter reads which entries are asked for. unknown is why a thread was not
// found, which is an error only if the log does not know it either.
func (a commands) logFilter(ctx context.Context, c *ucli.Context) (f eventlog.Filter, unknown, err error) {
	f = eventlog.Filter{Thread: c.String("thread"), Process: c.String("process"), Date: c.String("date")}
	if f.Thread != "" {
		var id string
		if id, unknown = a.Thread(ctx, f.Thread); unknown == nil {
			f.Thread = id
		}
	}
	if f.Process != "" && !isProcess(f.Process) {
		return f, unknown, cmdline.UsageError(fmt.Sprintf("--process %q is not a process in the log", f.Process),
			"uwf log show --format json has them as \"pid\", such as 1795291508464-4711")
	}
	if f.Date != "" {
		f.Date, err = day(f.Date, a.Env.Now())
	}
	return f, unknown, err
}

func (a commands) printLog(entries []eventlog.Entry) error {
	return a.Print(entries, func(w *term.Page) {
		t := term.NewTable("TIME", "THREAD", "EVENT", "AGENT", "TOOK")
		for _, e := range entries {
			took := ""
			if e.Ms > 0 {
				took = render.Duration(e.Ms)
			}
			t.Row(e.TS.In(a.Env.Now().Location()).Format(time.DateTime), e.Thread, e.Msg, e.Agent, took)
		}
		if len(entries) == 0 {
			w.Printf("there is no such entry\n")
			return
		}
		w.Table(t)
	})
}

// isProcess reports whether s has the form of Entry.Pid.
func isProcess(s string) bool {
	start, id, ok := strings.Cut(s, "-")
	_, errStart := strconv.ParseUint(start, 10, 64)
	_, errID := strconv.ParseUint(id, 10, 64)
	return ok && errStart == nil && errID == nil
}

func (a commands) logClean(_ context.Context, c *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	before, err := day(c.String("before"), a.Env.Now())
	if err != nil {
		return err
	}
	n, err := eventlog.Clean(durable.OS(), dirs.Logs(), before)
	if err != nil {
		return err
	}
	return a.Printf(map[string]int{"deleted": n}, "deleted %d\n", n)
}

// day reads a date, or a time before now, as the log names days.
func day(s string, now time.Time) (string, error) {
	t, err := term.ParseTime(s, now, time.UTC)
	if err != nil {
		return "", err
	}
	return t.UTC().Format(time.DateOnly), nil
}

func statsFormats() []string { return []string{"text", "json", "yaml", "csv"} }

func (a commands) statsCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "stats", Usage: "sum up steps, time, tokens and cost",
		Description: "A step that forks share counts once. What no agent has told is unknown, not zero: ≥ marks a sum\n" +
			"that lacks some.\n\n" +
			"   uwf stats --since 7d --by role,model",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "since", Usage: "only steps that were finished after `TIME`: a date, or 7d, 24h, 30m ago"},
			&ucli.StringFlag{Name: "by", Usage: "in groups, a comma-separated `LIST` of " + strings.Join(view.StatsBy(), ", "), Value: "workflow"},
			app.FormatFlag(statsFormats(), "text on a terminal, else json"),
		},
	}, a.stats)
}

func (a commands) stats(ctx context.Context, c *ucli.Context) error {
	format, err := a.OwnFormat(c, statsFormats())
	if err != nil {
		return err
	}
	by, err := statsBy(c.String("by"))
	if err != nil {
		return err
	}
	var after time.Time
	if now := a.Env.Now(); c.IsSet("since") {
		if after, err = term.ParseTime(c.String("since"), now, now.Location()); err != nil {
			return err
		}
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	s, err := view.Stats(ctx, e, after, by)
	if err != nil {
		return err
	}
	for _, hole := range s.Unread {
		a.Say("uwf: %s", plaintext.Line(term.Joined(hole.Thread, hole.Error)))
		a.Status = protocol.CodeCorrupt
	}
	if format == "csv" {
		return view.StatsCSV(a.Env.Stdout, s)
	}
	return a.Print(s, func(w *term.Page) { statsText(w, s) })
}

// statsBy reads --by.
func statsBy(list string) ([]string, error) {
	var by []string
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		switch {
		case slices.Contains(by, word):
		case slices.Contains(view.StatsBy(), word):
			by = append(by, word)
		default:
			return nil, cmdline.UsageError(fmt.Sprintf("steps cannot be told apart by %q", word), cmdline.Choices("--by ", word, view.StatsBy())...)
		}
	}
	return by, nil
}

func statsText(w *term.Page, s protocol.Stats) {
	var header []string
	for _, by := range s.By {
		header = append(header, strings.ToUpper(by))
	}
	t := term.NewTable(append(header, "STEPS", "TIME", "TOKENS", "COST")...)
	row := func(names []string, sum protocol.Totals) {
		t.Row(append(names, strconv.Itoa(sum.Steps), render.Duration(sum.DurationMs), cmp.Or(view.Tokens(sum), "-"), cmp.Or(view.Cost(sum), "-"))...)
	}
	for _, r := range s.Rows {
		var names []string
		for _, by := range s.By {
			names = append(names, cmp.Or(r.Of[by], "(unknown)"))
		}
		row(names, r.Totals)
	}
	total := make([]string, len(s.By))
	total[0] = "all"
	row(total, s.Totals)
	w.Table(t)
}

func (a commands) inboxCommand() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "inbox", Usage: "list what waits for you: questions and failures, the oldest first, each with the line to type",
	}, func(ctx context.Context, _ *ucli.Context, e *engine.Engine) error {
		items := view.Inbox(ctx, e, func(err error) {
			a.Say("uwf: %v", err)
			a.Status = app.Classify(err).Code
		})
		return a.Print(items, func(w *term.Page) {
			facts, _ := e.Heads.AllFacts(ctx) // without them ids are whole
			inboxText(w, items, facts, a.Env.Now())
		})
	})
}

// inboxText is a paragraph for each thread: a line to type is not for a table.
func inboxText(w *term.Page, items []protocol.InboxItem, facts map[string]heads.Facts, now time.Time) {
	if len(items) == 0 {
		w.Printf("nothing waits for you\n")
		return
	}
	const most = 200 // characters of a question: thread show has all of it
	for i, it := range items {
		asks := it.Reason
		if it.Question != nil {
			asks = it.Question.Role + " asks: " + it.Question.Text
		}
		if i > 0 {
			w.Printf("\n")
		}
		t := term.NewTable(app.Named(it.Thread, facts), string(it.Status), it.Workflow, app.Started(it.Since, now),
			app.TitleText(it.Title, nil))
		t.Headed = false
		w.Table(t)
		w.Values("  ", term.FirstLine(asks, most), "  ", it.Command)
	}
}
