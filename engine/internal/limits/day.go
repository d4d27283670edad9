package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Day is the limit of what the agents of a home may cost until midnight.
type Day struct {
	of  Accounts
	cap protocol.Amount
}

// Today returns the limit of the day that a config sets. If it sets none, nothing is read or
// written.
func (a Accounts) Today(c *protocol.LimitsConfig) Day {
	if c == nil || c.PerDay == nil {
		return Day{of: a}
	}
	return Day{a, protocol.Amount{CostUSD: c.PerDay.CostUSD, Tokens: c.PerDay.Tokens}}
}

const (
	dayFile = "per-day.sum" // no account has a dot in its id
	maxDay  = 4 << 20       // bytes; a step between its sum and its head has 50
	// longestDay is a day on which clocks are set back an hour, and another one as reserve.
	longestDay = 26 * time.Hour
)

// spent is what the agents of a home have cost until midnight.
type spent struct {
	EndsMs  int64   `json:"endsMs"` // midnight, where the day began
	CostUSD float64 `json:"costUsd"`
	Tokens  int64   `json:"tokens"`
	// More is what a person has granted beyond the limit.
	More protocol.Amount `json:"more"`
	// Unknown: it was damaged, so that nobody knows what was spent before.
	Unknown bool `json:"unknown,omitempty"`
	// Counted are the steps whose cost is in, and that are not the heads of their threads yet.
	Counted map[string]protocol.Hash `json:"counted,omitempty"`
}

// Limited reports whether there is a limit.
func (d Day) Limited() bool { return d.cap != protocol.Amount{} }

// UsedUp returns until when no agent must start, and why; the zero Limit: they may. No provider
// has refused anything, so that its Refusals are 0.
func (d Day) UsedUp() Limit {
	if !d.Limited() {
		return Limit{}
	}
	return d.limit(d.read())
}

func (d Day) limit(s spent) Limit {
	l := Limit{UntilMs: s.EndsMs}
	if s.Unknown {
		l.Reason = "what was spent today is unknown: " + d.of.file(dayFile) + " was damaged"
		return l
	}
	most, used := d.cap.Plus(s.More).Figures(), s.amount().Figures()
	for i, x := range protocol.Measures() {
		if d.cap.Figures()[i] > 0 && used[i] >= most[i] {
			l.Reason = "the day's limit of " + x.Text(most[i]) + x.Unit + " is used up"
			return l
		}
	}
	return Limit{}
}

func (s spent) amount() protocol.Amount { return protocol.Amount{CostUSD: s.CostUSD, Tokens: s.Tokens} }

// Count adds what an agent has cost, and warns if that is unknown. A step is counted once until
// [Day.Settle]; "": a failed try.
func (d Day) Count(thread string, step protocol.Hash, u *protocol.Usage) error {
	if d.Limited() && !(d.cap.CostUSD > 0 && u.IsPriced() || d.cap.Tokens > 0 && u.Counted()) {
		d.of.Warn("what an agent has cost is unknown: limits.perDay does not count it")
	}
	return d.change(func(s *spent) {
		if u == nil || step != "" && s.Counted[thread] == step {
			return
		}
		if u.CostUSD != nil {
			s.CostUSD = protocol.RoundUSD(s.CostUSD + *u.CostUSD)
		}
		if s.Tokens += u.Tokens(); step != "" {
			s.Counted[thread] = step
		}
	})
}

// Note replaces what was damaged, so that it counts until midnight only.
func (d Day) Note() error { return d.change(func(*spent) {}) }

// Settle ends the care for a step that is its thread's head now.
func (d Day) Settle(thread string) error {
	return d.change(func(s *spent) { delete(s.Counted, thread) })
}

// Raise grants as much again as the limit is beyond what was spent, if that is used up. It returns
// what holds now, and the limit that held until then; the zero Limit: none did.
func (d Day) Raise() (said string, was Limit, err error) {
	err = d.change(func(s *spent) {
		if was = d.limit(*s); was == (Limit{}) {
			return
		}
		if s.Unknown {
			*s = spent{EndsMs: s.EndsMs, Counted: s.Counted}
		} else {
			s.More = d.cap.Plus(s.More).Combined(s.amount(), func(x, y float64) float64 { return max(x, y) })
		}
		var may []string
		for i, x := range protocol.Measures() {
			if d.cap.Figures()[i] > 0 {
				may = append(may, x.May+" "+x.Text(d.cap.Plus(s.More).Figures()[i])+x.Unit)
			}
		}
		until := time.UnixMilli(s.EndsMs).In(d.of.Now().Location()).Format(time.DateTime)
		said = "granted as much again for today: all threads together may " + strings.Join(may, " and ") + " until " + until
	})
	return said, was, err
}

// read returns what was spent. What is damaged or from a clock that was wrong never counts as
// nothing.
func (d Day) read() (s spent) {
	data, err := safeopen.ReadFile(d.of.file(dayFile), maxDay, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && (json.Unmarshal(data, &s) != nil || !s.plausible()) {
		s = spent{Unknown: true}
	}
	if s.Counted == nil {
		s.Counted = map[string]protocol.Hash{}
	}
	now := d.of.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location()).UnixMilli()
	switch left := s.EndsMs - now.UnixMilli(); {
	case s.EndsMs > 0 && left <= 0:
		s = spent{EndsMs: midnight, Counted: s.Counted}
	case s.EndsMs == 0, left > longestDay.Milliseconds():
		s.EndsMs = midnight
	}
	return s
}

func (s spent) plausible() bool {
	return s.EndsMs > 0 && s.CostUSD >= 0 && s.Tokens >= 0 && s.More.CostUSD >= 0 && s.More.Tokens >= 0
}

// change replaces what was spent, while no other process does.
func (d Day) change(to func(*spent)) error {
	if !d.Limited() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience) // many agents can end at once
	defer cancel()
	path := d.of.file(dayFile)
	lock, err := durable.Lock(ctx, path+".lock")
	if err != nil {
		return fmt.Errorf("lock the day's sum: %w", err)
	}
	defer free(&lock)
	was := d.read()
	now := was
	now.Counted = maps.Clone(was.Counted)
	if to(&now); reflect.DeepEqual(was, now) && !now.Unknown {
		return nil
	}
	data, err := json.Marshal(now)
	if err == nil {
		err = durable.WriteFile(d.of.FS, path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the day's sum: %w", err)
	}
	return nil
}
