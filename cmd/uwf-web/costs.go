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

	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

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
	Rows         []protocol.StatsRow
	All          protocol.Totals
	Longest      float64 // the highest cost of a row
	More         int
	Threads      int
	Unread       int
	TooLong      bool
	Command, CSV string
}

// sums is the cost of steps in a row. Bar is its share of the longest, in percent.
type sums struct {
	Steps, Bar         int
	Time, Tokens, Cost string
}

func sumsOf(t protocol.Totals, longest float64) sums {
	out := sums{Steps: t.Steps, Time: render.Duration(t.DurationMs), Tokens: view.TokensRounded(t), Cost: view.Cost(t)}
	if longest > 0 {
		out.Bar = int(100 * protocol.AmountOf(t).CostUSD / longest)
	}
	return out
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
	if !slices.Contains(byAll, "day") {
		byAll = append(byAll, "day")
	}
	daily, err := s.sums(r.Context(), a, byAll)
	sums := view.Regroup(daily, a.By)
	p.TooLong, p.Threads, p.Unread = err != nil, sums.Threads, len(sums.Unread)
	p.Plot = htmlpage.PlotOf(daily, cmp.Or(slices.DeleteFunc(slices.Clone(a.By),
		func(by string) bool { return by == "day" })...), s.engine.Reader.Env.Now())
	const most = 500
	p.All, p.More = sums.Totals, max(0, len(sums.Rows)-most)
	p.Rows = sums.Rows[:len(sums.Rows)-p.More]
	for _, row := range sums.Rows {
		p.Longest = max(p.Longest, protocol.AmountOf(row.Totals).CostUSD)
	}
	return end(p)
}

// sums computes the sums. On a timeout it returns what it has with an error.
func (s *server) sums(ctx context.Context, a asked, by []string) (protocol.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return view.Stats(ctx, s.engine, s.known, a.After, by)
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
