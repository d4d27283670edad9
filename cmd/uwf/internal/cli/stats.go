package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

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
	return a.Print(s, func(w io.Writer) error { return statsText(w, s) })
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
			hints := []string{"one of " + strings.Join(view.StatsBy(), ", ")}
			if near := suggest.Nearest(word, view.StatsBy(), 1); len(near) > 0 {
				hints = append([]string{"did you mean --by " + near[0] + "?"}, hints...)
			}
			return nil, cmdline.UsageError(fmt.Sprintf("steps cannot be told apart by %q", word), hints...)
		}
	}
	return by, nil
}

func statsText(w io.Writer, s protocol.Stats) error {
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
	return t.Print(w)
}
