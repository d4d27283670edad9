package htmlpage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// Plot is what steps have cost over time: a column for each day, one colour on the other
// for each group.
type Plot struct {
	What, By, Of string // what is plotted; of which groups; how long a column is
	Most         string // the highest column
	First, Last  string
	Groups       []PlotGroup
	Bars         []PlotBar
	Words        string // what a screen reader says
}

// PlotGroup is a colour.
type PlotGroup struct{ Name, Sum, Class string }

// PlotBar is one colour of one column. X and W are percent, Y and H are pixels.
type PlotBar struct{ Class, X, W, Y, H, Title string }

// What a plot has at most, and how high it is.
const (
	plotGroups  = 6 // the others are one
	plotColumns = 120
	plotHeight  = 180.0
)

// others is the name of the groups that have no colour of their own.
const others = "others"

// PlotOf plots sums that are told apart by day, and by another name ("": by nothing
// else); nil: there is nothing to plot. It is the cost, where one is known, else tokens,
// else time. The columns go up to now.
func PlotOf(s protocol.Stats, by string, now time.Time) *Plot {
	p := &Plot{What: "Cost", By: by}
	value, text := costValue, func(v float64) string { return protocol.Dollars(v) }
	if !slices.ContainsFunc(s.Rows, func(r protocol.StatsRow) bool { return costValue(r.Totals) > 0 }) {
		p.What, value, text = "Tokens", tokensValue, func(v float64) string { return view.Thousands(int64(v)) }
	}
	if !slices.ContainsFunc(s.Rows, func(r protocol.StatsRow) bool { return value(r.Totals) > 0 }) {
		p.What, value, text = "Time", func(t protocol.Totals) float64 { return float64(t.DurationMs) }, func(v float64) string { return render.Duration(int64(v)) }
	}
	sums := map[string]float64{} // of groups
	for _, r := range s.Rows {
		sums[r.Of[by]] += value(r.Totals)
	}
	maps.DeleteFunc(sums, func(_ string, v float64) bool { return v <= 0 })
	if len(sums) == 0 {
		return nil
	}
	class := p.group(sums, text)
	first, last := now.Format(time.DateOnly), now.Format(time.DateOnly)
	if s.Since != nil {
		first = time.UnixMilli(*s.Since).In(now.Location()).Format(time.DateOnly)
	}
	for _, r := range s.Rows {
		first, last = min(first, r.Of["day"]), max(last, r.Of["day"])
	}
	columns, names := columnsOf(first, last)
	p.Of = map[int]string{len("2006-01-02"): "day", len("2006-01"): "month", len("2006"): "year", len("all"): "time"}[len(names[0])]
	heights := map[string]map[string]float64{} // by column and class
	most := 0.0
	for _, r := range s.Rows {
		column := columns(r.Of["day"])
		if heights[column] == nil {
			heights[column] = map[string]float64{}
		}
		heights[column][class[r.Of[by]]] += value(r.Totals)
	}
	for _, groups := range heights {
		sum := 0.0
		for _, v := range groups {
			sum += v
		}
		most = max(most, sum)
	}
	p.Most, p.First, p.Last = text(most), names[0], names[len(names)-1]
	p.draw(names, heights, most, text)
	p.Words = fmt.Sprintf("%s for each %s from %s to %s, at most %s. The table has all numbers.", p.What, p.Of, p.First, p.Last, p.Most)
	return p
}

func costValue(t protocol.Totals) float64 {
	if t.Usage == nil || t.Usage.CostUSD == nil {
		return 0
	}
	return *t.Usage.CostUSD
}

func tokensValue(t protocol.Totals) float64 {
	if t.Usage == nil {
		return 0
	}
	return float64(t.Usage.Tokens())
}

// group gives a colour to the groups with the largest sums, and returns the class of each.
func (p *Plot) group(sums map[string]float64, text func(float64) string) map[string]string {
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(a, b)) })
	class := map[string]string{}
	rest := 0.0
	for i, name := range names {
		if i >= plotGroups && len(names) > plotGroups+1 {
			class[name] = fmt.Sprintf("g%d", plotGroups)
			rest += sums[name]
			continue
		}
		class[name] = fmt.Sprintf("g%d", i)
		shown := cmp.Or(Line(name, Longest), "(unknown)")
		if p.By == "" {
			shown = "all"
		}
		p.Groups = append(p.Groups, PlotGroup{Name: shown, Sum: text(sums[name]), Class: class[name]})
	}
	if rest > 0 {
		p.Groups = append(p.Groups, PlotGroup{Name: others, Sum: text(rest), Class: fmt.Sprintf("g%d", plotGroups)})
	}
	return class
}

// columnsOf are the columns from one day to another: days, else months, else years,
// the first ones if those are too many, too. of is the column of a day.
func columnsOf(first, last string) (of func(day string) string, names []string) {
	from, err := time.Parse(time.DateOnly, first)
	to, wrong := time.Parse(time.DateOnly, last)
	if err != nil || wrong != nil { // a year beyond four digits
		return func(string) string { return "all" }, []string{"all"}
	}
	for _, unit := range []struct {
		form                string
		years, months, days int
	}{{time.DateOnly, 0, 0, 1}, {"2006-01", 0, 1, 0}, {"2006", 1, 0, 0}} {
		names = nil
		at := from
		if unit.days == 0 {
			at = time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC) // the 31st has no month after it
		}
		for ; at.Format(unit.form) <= to.Format(unit.form) && len(names) <= plotColumns; at = at.AddDate(unit.years, unit.months, unit.days) {
			names = append(names, at.Format(unit.form))
		}
		of = func(day string) string { return day[:min(len(day), len(unit.form))] }
		if len(names) <= plotColumns {
			break
		}
	}
	return of, names
}

// draw places the bars.
func (p *Plot) draw(names []string, heights map[string]map[string]float64, most float64, text func(float64) string) {
	width := 100 / float64(len(names))
	gap := min(width*0.2, 1)
	for i, name := range names {
		y := plotHeight
		for _, g := range p.Groups {
			v := heights[name][g.Class]
			if v <= 0 {
				continue
			}
			h := max(v*plotHeight/most, 1)
			y -= h
			p.Bars = append(p.Bars, PlotBar{
				Class: g.Class, X: fmt.Sprintf("%.2f", float64(i)*width+gap/2), W: fmt.Sprintf("%.2f", min(width-gap, 8)),
				Y: fmt.Sprintf("%.1f", max(y, 0)), H: fmt.Sprintf("%.1f", h), Title: name + ": " + g.Name + " " + text(v),
			})
		}
	}
}
