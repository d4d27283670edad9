package main

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// byDay is the grouping that a plot uses.
const byDay = "day"

// asked describes the requested sums.
type asked struct {
	Since string
	After time.Time
	By    []string
}

// spans lists the time spans in the form; "" means all time.
var spans = []string{"1d", "7d", "30d", "90d"}

// askedFor parses a URL query. The default is the last 30 days.
func (s *server) askedFor(query url.Values) asked {
	a := asked{Since: "30d"}
	if query.Has("since") {
		a.Since = query.Get("since")
	}
	if days, err := time.ParseDuration(strings.TrimSuffix(a.Since, "d") + "h"); err == nil && slices.Contains(spans,
		a.Since) {
		a.After = s.engine.Reader.Env.Now().Add(-24 * days)
	} else {
		a.Since = ""
	}
	for _, by := range view.StatsBy() {
		if slices.Contains(query["by"], by) {
			a.By = append(a.By, by)
		}
	}
	if len(a.By) == 0 {
		a.By = []string{"workflow"}
	}
	return a
}

// command returns the equivalent command line.
func (a asked) command() string {
	line := "uwf stats --by " + strings.Join(a.By, ",")
	if a.Since != "" {
		line += " --since " + a.Since
	}
	return line
}

// statsPage shows the cost of steps.
type statsPage struct {
	asked
	Spans, ByAll []string
	Checked      map[string]bool
	Plot         *htmlpage.Plot
	Rows         []statsRow
	More         int
	Threads      int
	Unread       int
	TooLong      bool
	Command, CSV string
}

type statsRow struct {
	Names              []string
	Steps              int
	Time, Tokens, Cost string
	Bar                int
	All                bool
}

func (s *server) stats(w http.ResponseWriter, r *http.Request) error {
	a := s.askedFor(r.URL.Query())
	p := statsPage{asked: a, Spans: spans, ByAll: view.StatsBy(), Checked: map[string]bool{}, Command: a.command()}
	for _, by := range a.By {
		p.Checked[by] = true
	}
	p.CSV = s.base + "stats.csv?" + url.Values{"since": {a.Since}, "by": a.By}.Encode()
	end := s.begin(w, "stats", "Costs", "")
	byAll := slices.Clone(a.By)
	if !slices.Contains(byAll, byDay) {
		byAll = append(byAll, byDay)
	}
	daily, err := s.sums(r.Context(), a, byAll)
	sums := view.Regroup(daily, a.By)
	p.TooLong, p.Threads, p.Unread = err != nil, sums.Threads, len(sums.Unread)
	p.Plot = htmlpage.PlotOf(daily, cmp.Or(slices.DeleteFunc(slices.Clone(a.By),
		func(by string) bool { return by == byDay })...), s.engine.Reader.Env.Now())
	p.fill(sums)
	return end(p)
}

// sums computes the sums. On a timeout it returns what it has with an error.
func (s *server) sums(ctx context.Context, a asked, by []string) (protocol.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*patience)
	defer cancel()
	return view.Stats(ctx, s.engine, a.After, by)
}

// fill builds the table.
func (p *statsPage) fill(sums protocol.Stats) {
	const most = 500
	longest := 0.0
	for _, row := range sums.Rows {
		longest = max(longest, protocol.AmountOf(row.Totals).CostUSD)
	}
	add := func(names []string, t protocol.Totals, all bool) {
		row := statsRow{Names: names, Steps: t.Steps, Time: render.Duration(t.DurationMs), Tokens: view.TokensRounded(t),
			Cost: view.Cost(t), All: all}
		if longest > 0 && !all {
			row.Bar = int(protocol.AmountOf(t).CostUSD * 100 / longest)
		}
		p.Rows = append(p.Rows, row)
	}
	p.More = max(0, len(sums.Rows)-most)
	for _, row := range sums.Rows[:len(sums.Rows)-p.More] {
		var names []string
		for _, by := range p.By {
			names = append(names, cmp.Or(htmlpage.Line(row.Of[by], htmlpage.Longest), "(unknown)"))
		}
		add(names, row.Totals, false)
	}
	total := make([]string, len(p.By))
	total[0] = "all"
	add(total, sums.Totals, true)
}

// statsCSV serves the same sums as CSV.
func (s *server) statsCSV(w http.ResponseWriter, r *http.Request) error {
	a := s.askedFor(r.URL.Query())
	sums, err := s.sums(r.Context(), a, a.By)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeFailed, Message: "too many threads for a page", Err: err,
			Hints: []string{a.command() + " --format csv"}}
	}
	var out bytes.Buffer
	if err := view.StatsCSV(&out, sums); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="uwf-stats.csv"`)
	_, _ = out.WriteTo(w) // the client may have disconnected
	return nil
}
