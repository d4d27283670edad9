// Package budget sums up the cost of runs and applies limits to them. It makes no decisions about threads.
package budget

import (
	"fmt"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// With applies a thread's own limits to those of its workflow.
func With(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	return own.Or(l)
}

// Granted adds the amounts granted beyond the limits.
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

// Bounded reports whether l limits the cost of a run.
func Bounded(l protocol.Limits) bool { return l.Amount() != protocol.Amount{} }

// SpentOf converts a sum to the amounts that limits count.
func SpentOf(s Sums) protocol.Amount {
	out := protocol.AmountOf(s.Totals)
	out.Unknown = s.Unknown
	return out
}

// Least returns the smaller of two bounds; before is nil if there was none.
func Least[T int64 | float64](before *T, now T) *T {
	if before != nil {
		now = min(now, *before)
	}
	return &now
}

// Limit returns the name of the reached limit as a fact of a reason. If reached is "", it returns the first
// limit that is set.
func Limit(l protocol.Limits, reached string) string {
	fact := ""
	for i, x := range protocol.Measures() {
		if fact = x.Fact; reached == x.Outcome || reached == "" && l.Amount().Figures()[i] > 0 {
			break
		}
	}
	return fact
}

// More is an amount granted to a run beyond its limits.
type More struct {
	protocol.Amount
	Again bool // double the limits that are used up
}

// Set sets the limits that are not zero in l, and resets the amounts granted beyond them.
func Set(own *heads.Limits, l protocol.Limits) {
	own.Limits = l.Or(own.Limits)
	own.More = own.More.Combined(l.Amount(), func(more, limit float64) float64 {
		if limit > 0 {
			more = 0
		}
		return more
	})
}

// nearly is the share of a limit from which it counts as used up: an agent that respects the limit may have
// ended early because too little was left.
const nearly = 0.8

// Grant adds amounts to those granted before, and returns a description of each.
func Grant(own *heads.Limits, id string, s moderator.State, outcome string, m More) (lines []string, err error) {
	limits, spent, granted, more := s.Limits.Amount().Figures(), s.Spent.Figures(), own.More.Figures(), m.Figures()
	if m.Again {
		_, usedUp := moderator.OverBudget(s, "")
		for i, x := range protocol.Measures() {
			// With this outcome, another reply would have exceeded the limit, no matter how much is left.
			if limits[i] > 0 && (spent[i] >= nearly*limits[i] || outcome == x.Outcome) {
				more[i], usedUp = max(more[i], limits[i]-granted[i]), true
			}
		}
		switch {
		case usedUp:
		case outcome != "": // it was the step's own budget, which each step gets in full
			return nil, nil
		default:
			limit := ""
			if Bounded(s.Limits) {
				limit = Limit(s.Limits, "")
			}
			return nil, fault.New(protocol.CodeFailed, "thread %s has not reached a limit", id).Because("limit-not-reached", "thread", id, "limit", limit)
		}
	}
	for i, x := range protocol.Measures() {
		switch {
		case more[i] == 0:
			continue
		case limits[i] == 0:
			return nil, fault.New(protocol.CodeUsage, "thread %s has no %s limit", id,
				x.Key).Because("no-such-limit", "thread", id, "limit", x.Fact)
		}
		total := min(protocol.RoundUSD(max(limits[i], spent[i])+more[i]), float64(protocol.MaxFigure))
		granted[i] += total - limits[i]
		lines = append(lines, fmt.Sprintf("granted %s more%s: %s %s, and may %s %s in total", x.Text(more[i]), x.Unit, x.Has,
			x.Text(spent[i]), x.May, x.Text(total)))
	}
	own.More = own.More.WithFigures(granted)
	if n, _ := moderator.Unmeasured(s.Spent, s.Limits); n > 0 {
		own.More = own.More.Plus(protocol.Amount{Unknown: s.Spent.Unknown})
		lines = append(lines, fmt.Sprintf("accepted unknown usage of %d agent runs", n))
	}
	return lines, nil
}

// ToFacts returns the facts of a thread that starts with its own limits; nil if it has none.
func ToFacts(l protocol.Limits) *heads.Limits {
	if l == (protocol.Limits{}) {
		return nil
	}
	return &heads.Limits{Limits: l}
}

// CostOf returns the cost of a child, or nil if nothing is known. If the cost of one run is unknown, so is
// the child's.
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
