package doctor

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/threadid"
)

// threads looks at the files of the heads, and at the steps in flight.
func (x *examination) threads(ctx context.Context) {
	active, err := x.count(ctx)
	if err != nil {
		x.problem("threads", "uwf cas fsck tells the line; uwf cas fsck --repair moves it away", "%v", err)
		return
	}
	names, err := x.index.Workflows(ctx)
	if err != nil {
		x.problem("threads", "correct "+filepath.Join(x.Dirs.Home, "registry.yaml"), "%v", err)
		return
	}
	facts, err := x.index.AllFacts(ctx)
	if err != nil {
		x.problem("threads", "uwf cas fsck --repair moves the line away", "%v", err)
		return
	}
	if err := x.index.CheckLost(ctx); err != nil {
		x.problem("threads", "uwf cas fsck names them", "%v", err)
		return
	}
	x.ok("threads", "%s active, %s registered", render.Count(active, "thread"), render.Count(len(names), "workflow"))
	x.rateLimited(ctx, facts)
	x.running(ctx)
}

// rateLimited notes threads that wait until a provider grants more.
func (x *examination) rateLimited(ctx context.Context, facts map[string]heads.Facts) {
	now, due, waiting := x.Env.Now().UnixMilli(), 0, 0
	for h := range x.index.Heads(ctx) { // all could be read just now
		switch f := facts[h.Thread]; {
		case f.ParkedUntil > now:
			waiting++
		case f.ParkedUntil > 1: // the time has come, and nobody has gone on
			due++
		}
	}
	active := x.accounts().Active()
	for _, account := range slices.Sorted(maps.Keys(active)) {
		l := active[account]
		x.note("threads", "uwf thread list --status rate-limited", "account %s is limited until %s: %s",
			account, l.Until().In(x.Env.Now().Location()).Format(time.DateTime), plaintext.Line(l.Reason))
	}
	if waiting > 0 {
		x.note("threads", "uwf thread list", "%s rate-limited; uwf run-due continues once the provider allows it", render.Count(waiting, "thread"))
	}
	if due > 0 {
		x.note("threads", "uwf run-due", "%s can go on: the provider grants more again", render.Count(due, "thread"))
	}
}

// day notes that the limit of the day is used up.
func (x *examination) day(context.Context) {
	if x.config == nil {
		return
	}
	if l := x.accounts().Today(x.config.Limits).UsedUp(); l != (limits.Limit{}) {
		x.note("threads", "uwf inbox", "no agent starts until %s: %s",
			l.Until().In(x.Env.Now().Location()).Format(time.DateTime), l.Reason)
	}
}

func (x *examination) accounts() limits.Accounts {
	return limits.Accounts{Dir: x.Dirs.Limits(), FS: durable.OS(), Now: x.Env.Now, Warn: func(text string) {
		x.warn("threads", "nothing has to be done: the next agent asks its provider", "%s", text)
	}}
}

// count reads both lists of threads to their ends.
func (x *examination) count(ctx context.Context) (active int, err error) {
	for h, err := range x.index.Heads(ctx) {
		if err != nil {
			return 0, err
		}
		active++
		x.fromFuture(h.Thread)
	}
	for _, err := range x.index.History(ctx) {
		if err != nil {
			return 0, err
		}
	}
	return active, nil
}

// ahead is how far a clock may be before another one.
const ahead = 24 * time.Hour

// fromFuture notes a thread that was started while the clock was wrong: it is no
// fault, but until then it is the newest one.
func (x *examination) fromFuture(thread string) {
	at, err := threadid.Time(thread)
	if err == nil && at.After(x.Env.Now().Add(ahead)) {
		x.note("threads", "name other threads by their ids: @ is this one", "thread %s says that it was started at %s: the clock was wrong", thread, at.UTC().Format(time.DateOnly))
	}
}

// running names the threads that somebody works on: a step that seems to hang
// is one of them.
func (x *examination) running(ctx context.Context) {
	if x.Running == nil {
		return
	}
	all, err := x.Running(ctx)
	if err != nil {
		x.warn("threads", "uwf thread list --status running", "which threads are running cannot be told: %v", err)
		return
	}
	if len(all) == 0 {
		return
	}
	var ids []string
	for _, r := range all {
		ids = append(ids, r.Thread)
	}
	x.note("threads", "uwf thread stop "+ids[0]+", if one should not be", "%s at work: %s", render.Count(len(ids), "thread"), strings.Join(ids, ", "))
}
