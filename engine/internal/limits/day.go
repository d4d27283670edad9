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

// Day limits the cost of all agents of a home until midnight.
type Day struct {
	of  Accounts
	cap protocol.Amount
}

// Today returns the daily limit set in a config. If there is none, its methods read and write nothing.
func (a Accounts) Today(c *protocol.LimitsConfig) Day {
	if c == nil || c.PerDay == nil {
		return Day{of: a}
	}
	return Day{a, protocol.Amount{CostUSD: c.PerDay.CostUSD, Tokens: c.PerDay.Tokens}}
}

const (
	dayFile = "per-day.sum" // IDs of accounts contain no dot
	maxDay  = 4 << 20       // bytes; an unsettled step needs 50
	// longestDay is a day on which clocks are set back by an hour, plus an hour in reserve.
	longestDay = 26 * time.Hour
)

// spent is the cost of a home's agents until midnight.
type spent struct {
	EndsMs  int64   `json:"endsMs"` // midnight in the time zone where the day started
	CostUSD float64 `json:"costUsd"`
	Tokens  int64   `json:"tokens"`
	// More is the amount that a user has granted beyond the limit.
	More protocol.Amount `json:"more"`
	// Unknown means that the file was damaged, so the earlier cost of the day is unknown.
	Unknown bool `json:"unknown,omitempty"`
	// Counted holds, by thread, steps whose cost is included but that are not the head yet.
	Counted map[string]protocol.Hash `json:"counted,omitempty"`

	unread error // why the file, which may be sound, could not be read
}

// Limited reports whether there is a daily limit.
func (d Day) Limited() bool { return d.cap != protocol.Amount{} }

// Spent returns what agents have cost today, and the limit; zero if there is none.
func (d Day) Spent() (spent, limit protocol.Amount) {
	if !d.Limited() {
		return spent, limit
	}
	s := d.read()
	return s.amount(), d.cap.Plus(s.More)
}

// UsedUp returns the limit that forbids starting an agent, or the zero Limit. Its Refusals is 0, because no
// provider has refused anything.
func (d Day) UsedUp() Limit {
	if !d.Limited() {
		return Limit{}
	}
	return d.limit(d.read())
}

func (d Day) limit(s spent) Limit {
	l := Limit{UntilMs: s.EndsMs}
	if s.Unknown {
		l.Reason = "today's spending is unknown: " + d.of.file(dayFile) + " was damaged"
		return l
	}
	most, used := d.cap.Plus(s.More).Figures(), s.amount().Figures()
	for i, x := range protocol.Measures() {
		if d.cap.Figures()[i] > 0 && used[i] >= most[i] {
			l.Reason = "the daily limit of " + x.Text(most[i]) + x.Unit + " is reached"
			return l
		}
	}
	return Limit{}
}

func (s spent) amount() protocol.Amount { return protocol.Amount{CostUSD: s.CostUSD, Tokens: s.Tokens} }

// Count adds the cost of an agent, and warns if it is unknown. A step is counted only once until
// [Day.Settle]. step is "" for a failed try.
func (d Day) Count(thread string, step protocol.Hash, u *protocol.Usage) error {
	if d.Limited() && !(d.cap.CostUSD > 0 && u.IsPriced() || d.cap.Tokens > 0 && u.Counted()) {
		d.of.Warn("the cost of an agent is unknown, so limits.perDay does not include it")
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

// Note replaces a damaged file, so that it blocks agents only until midnight.
func (d Day) Note() error { return d.change(func(*spent) {}) }

// Settle removes the entry of a step that has become its thread's head.
func (d Day) Settle(thread string) error {
	return d.change(func(s *spent) { delete(s.Counted, thread) })
}

// Raise doubles the daily limit, relative to the amount spent, if it is used up. It returns a description of
// the new limit, and the limit in force before, which is zero if none was.
func (d Day) Raise() (granted string, was Limit, err error) {
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
		granted = "granted the same amount again for today: all threads together may " + strings.Join(may, " and ") + " until " + until
	})
	return granted, was, err
}

// read returns the amount spent. A damaged file, or one from a clock that was wrong, never counts as zero.
func (d Day) read() (s spent) {
	data, err := safeopen.ReadFile(d.of.file(dayFile), maxDay, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && (json.Unmarshal(data, &s) != nil || !s.plausible()) {
		s = spent{Unknown: true}
	}
	if errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		s.unread = err // it may be readable soon, unlike the file of another user
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

// change changes the amount spent under a lock.
func (d Day) change(to func(*spent)) error {
	if !d.Limited() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience) // many agents can end at the same time
	defer cancel()
	path := d.of.file(dayFile)
	lock, err := durable.Lock(ctx, path+".lock")
	if err != nil {
		return fmt.Errorf("lock the daily total: %w", err)
	}
	defer free(&lock)
	was := d.read()
	if was.unread != nil {
		return fmt.Errorf("read the daily total: %w", was.unread)
	}
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
		return fmt.Errorf("write the daily total: %w", err)
	}
	return nil
}
