package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
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
					&ucli.StringFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most the `N` newest"},
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
	return a.Print(files, func(w io.Writer) error {
		if len(files) == 0 {
			_, err := fmt.Fprintln(w, "the log is empty")
			return err
		}
		t := term.NewTable("DATE", "BYTES", "FILE")
		for _, f := range files {
			t.Row(f.Date, view.Thousands(f.Size), f.Name)
		}
		return t.Print(w)
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
	limit, err := logLimit(c)
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
	if limit > 0 {
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

// logLimit is --limit; 0: none.
func logLimit(c *ucli.Context) (int, error) {
	text := c.String("limit")
	if text == "" {
		return 0, nil
	}
	n, err := term.Positive(text)
	if err != nil {
		return 0, cmdline.UsageError(fmt.Sprintf("--limit must be a positive integer, got: %s", text), "uwf log show --limit 20")
	}
	return n, nil
}

func (a commands) printLog(entries []eventlog.Entry) error {
	return a.Print(entries, func(w io.Writer) error {
		t := term.NewTable("TIME", "THREAD", "EVENT", "AGENT", "TOOK")
		for _, e := range entries {
			took := ""
			if e.Ms > 0 {
				took = render.Duration(e.Ms)
			}
			t.Row(e.TS.In(a.Env.Now().Location()).Format(time.DateTime), e.Thread, e.Msg, e.Agent, took)
		}
		if len(entries) == 0 {
			_, err := fmt.Fprintln(w, "there is no such entry")
			return err
		}
		return t.Print(w)
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
	return a.Print(map[string]int{"deleted": n}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "deleted %d\n", n)
		return err
	})
}

// day reads a date, or a time before now, as the log names days.
func day(s string, now time.Time) (string, error) {
	t, err := term.ParseTime(s, now, time.UTC)
	if err != nil {
		return "", err
	}
	return t.UTC().Format(time.DateOnly), nil
}
