// Package budget has the sums of what a run has cost, and the limits that hold it. It
// decides nothing about threads.
package budget

import (
	"fmt"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// With adds what people have said of a thread's limits to those of its workflow.
func With(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	return own.Or(l)
}

// Granted adds what was granted beyond limits.
func Granted(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	return l.WithAmount(l.Amount().Combined(own.More, func(limit, more float64) float64 {
		if limit > 0 {
			limit += more
		}
		return limit
	}))
}

// Bounded reports whether limits are of what a run costs.
func Bounded(l protocol.Limits) bool { return l.Amount() != protocol.Amount{} }

// SpentOf is a sum as limits count it.
func SpentOf(s Sums) protocol.Amount {
	out := protocol.Amount{TimeMs: s.DurationMs, Unknown: s.Unknown}
	if s.Usage != nil {
		out.Tokens = s.Usage.Tokens()
		if s.Usage.CostUSD != nil {
			out.CostUSD = *s.Usage.CostUSD
		}
	}
	return out
}

// Least is the smaller one of two bounds; nil: there was none.
func Least[T int64 | float64](before *T, now T) *T {
	if before != nil {
		now = min(now, *before)
	}
	return &now
}

// Limit returns which limit was reached, as a fact of a reason; "": the first of those that are set.
func Limit(l protocol.Limits, reached string) string {
	fact := ""
	for i, x := range protocol.Measures() {
		if fact = x.Fact; reached == x.Outcome || reached == "" && l.Amount().Figures()[i] > 0 {
			break
		}
	}
	return fact
}

// More is what a person grants a run beyond its limits.
type More struct {
	protocol.Amount
	Again bool // as much as the limits are, of what is used up
}

// Set takes over the limits that are not zero. What was granted before was granted
// beyond another limit.
func Set(own *heads.Limits, l protocol.Limits) {
	own.Limits = l.Or(own.Limits)
	own.More = own.More.Combined(l.Amount(), func(more, limit float64) float64 {
		if limit > 0 {
			more = 0
		}
		return more
	})
}

// nearly is how much of a limit is used up when so little is left that an agent which keeps to it has
// ended before its work was done.
const nearly = 0.8

// Grant adds to what was granted.
func Grant(own *heads.Limits, id string, s moderator.State, outcome string, m More) (lines []string, err error) {
	limits, spent, granted, more := s.Limits.Amount().Figures(), s.Spent.Figures(), own.More.Figures(), m.Figures()
	if m.Again {
		_, usedUp := moderator.OverBudget(s, "")
		for i, x := range protocol.Measures() {
			// With this outcome a reply more would not have fitted, however much is left.
			if limits[i] > 0 && (spent[i] >= nearly*limits[i] || outcome == x.Outcome) {
				more[i], usedUp = max(more[i], limits[i]-granted[i]), true
			}
		}
		switch {
		case usedUp:
		case outcome != "": // the step's own budget: it has as much again anyway
			return nil, nil
		default:
			limit := ""
			if Bounded(s.Limits) {
				limit = Limit(s.Limits, "")
			}
			return nil, fault.New(protocol.CodeFailed, "thread %s has not reached a limit of what it may cost: there is nothing "+
				"to grant again", id).Because("limit-not-reached", "thread", id, "limit", limit)
		}
	}
	for i, x := range protocol.Measures() {
		switch {
		case more[i] == 0:
			continue
		case limits[i] == 0:
			return nil, fault.New(protocol.CodeUsage, "thread %s has no limit %s: there is nothing to grant beyond it", id,
				x.Key).Because("no-such-limit", "thread", id, "limit", x.Fact)
		}
		total := min(protocol.RoundUSD(max(limits[i], spent[i])+more[i]), float64(protocol.MaxFigure))
		granted[i] += total - limits[i]
		lines = append(lines, fmt.Sprintf("granted %s more%s: %s %s, and may %s %s in all", x.Text(more[i]), x.Unit, x.Has,
			x.Text(spent[i]), x.May, x.Text(total)))
	}
	own.More = own.More.WithFigures(granted)
	if n, _ := moderator.Unheld(s.Spent, s.Limits); n > 0 {
		own.More = own.More.Plus(protocol.Amount{Unknown: s.Spent.Unknown})
		lines = append(lines, fmt.Sprintf("accepted that it is not known what %d of its runs of agents have cost or used", n))
	}
	return lines, nil
}

// Said are the facts of a thread that begins with limits of its own.
func Said(l protocol.Limits) *heads.Limits {
	if l == (protocol.Limits{}) {
		return nil
	}
	return &heads.Limits{Limits: l}
}

// CostOf is what a child has cost; nil if nothing is known. Where the cost of one of its
// runs is unknown, so is that of the child.
func CostOf(sum protocol.Totals) *protocol.Usage {
	if sum.Usage == nil {
		return nil
	}
	usage := *sum.Usage
	usage.DurationMs = sum.DurationMs
	if sum.StepsWithoutCost > 0 {
		usage.CostUSD = nil
	}
	return &usage
}
