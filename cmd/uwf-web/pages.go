package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/threadid"
)

// What a page has at most.
const (
	most        = 16 << 10        // bytes of a text among others
	mostAlone   = 256 << 10       // bytes of a text on the page of its step
	rows        = 50              // threads
	stepsAtOnce = 100             // steps
	turnsAtOnce = 50              // turns
	patience    = 2 * time.Second // that looking through threads may take
)

// inboxPage is what waits, and what runs.
type inboxPage struct {
	Waiting []waiting
	More    int
	Running []running
	Lost    []string
}

type waiting struct {
	protocol.InboxItem
	Title, Asks, Mood, Link, Cost string
	Age                           string
	Since                         htmlpage.When
}

type running struct {
	Thread, Role, Agent, Link string
	Since                     htmlpage.When
}

func (s *server) inbox(w http.ResponseWriter, r *http.Request) {
	ctx, now := r.Context(), s.engine.Env.Now()
	p := inboxPage{}
	end := s.begin(w, "inbox", "Inbox", s.live(""))
	lost := func(err error) { p.Lost = append(p.Lost, htmlpage.Line(err.Error(), htmlpage.LongestTitle)) }
	for i, it := range view.Inbox(ctx, s.engine, lost) {
		if i >= 2*rows {
			p.More++
			continue
		}
		item := waiting{
			InboxItem: it, Title: htmlpage.Line(it.Title, htmlpage.LongestTitle), Mood: htmlpage.Mood(it.Status), Link: s.link("thread", it.Thread),
			Asks: htmlpage.Line(it.Reason, 500), Age: ageOf(it.Since, now), Since: htmlpage.WhenOf(it.Since, now),
		}
		item.Workflow, item.Command = htmlpage.Line(it.Workflow, htmlpage.Longest), htmlpage.Line(it.Command, htmlpage.LongestCommand)
		if it.Question != nil {
			item.Asks = htmlpage.Line(it.Question.Role, htmlpage.Longest) + ": " + htmlpage.Line(it.Question.Text, 500)
		}
		if it.Totals != nil {
			item.Cost = view.Cost(*it.Totals)
		}
		p.Waiting = append(p.Waiting, item)
	}
	atWork, err := s.engine.Running(ctx)
	if err != nil {
		lost(err)
	}
	for _, t := range atWork[:min(len(atWork), 2*rows)] {
		p.Running = append(p.Running, running{
			Thread: t.Thread, Role: htmlpage.Line(t.Role, htmlpage.Longest), Agent: htmlpage.Line(t.Agent, htmlpage.Longest),
			Link: s.link("thread", t.Thread), Since: htmlpage.WhenOf(&t.StartedAt, now),
		})
	}
	p.Lost = p.Lost[:min(len(p.Lost), rows)]
	end(p)
}

// ageOf says roughly how long ago something was.
func ageOf(ms *int64, now time.Time) string {
	if ms == nil {
		return ""
	}
	switch ago := now.Sub(time.UnixMilli(*ms)); {
	case ago < time.Minute:
		return "just now"
	case ago < time.Hour:
		return fmt.Sprintf("%d min", int(ago.Minutes()))
	case ago < 48*time.Hour:
		return fmt.Sprintf("%d h", int(ago.Hours()))
	default:
		return fmt.Sprintf("%d days", int(ago.Hours()/24))
	}
}

// link is the address of something, whatever its name.
func (s *server) link(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return s.base + strings.Join(parts, "/")
}

// threadsPage is one page of the list.
type threadsPage struct {
	Words, Status, Workflow string
	Statuses                []protocol.Status
	Rows                    []threadRow
	Next                    string // the link to older threads; "": there are none
	Looked, Of              int    // threads that were looked through, if not all could be
	Lost                    []string
}

type threadRow struct {
	ID, Title, Workflow, Status, Mood, Role, Cost, Link, ForkOf string
	Steps                                                       string
	Started                                                     htmlpage.When
}

// wanted is what a row must have.
type wanted struct{ words, workflow string }

func (q wanted) has(it protocol.ThreadItem) bool {
	name := ""
	if it.WorkflowName != nil {
		name = *it.WorkflowName
	}
	if q.workflow != "" && name != q.workflow {
		return false
	}
	all := strings.ToLower(it.Title + "\n" + name + "\n" + it.Thread)
	for word := range strings.FieldsSeq(strings.ToLower(q.words)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

func (s *server) threads(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	end := s.begin(w, "threads", "Threads", s.live(""))
	p := threadsPage{
		Words: htmlpage.Line(query.Get("q"), htmlpage.LongestTitle), Status: query.Get("status"), Workflow: query.Get("workflow"),
		Statuses: []protocol.Status{
			protocol.StatusIdle, protocol.StatusRunning, protocol.StatusSuspended, protocol.StatusFailed,
			protocol.StatusCompleted, protocol.StatusCancelled, protocol.StatusCorrupt,
		},
	}
	f := view.Filter{Ended: true}
	if slices.Contains(p.Statuses, protocol.Status(p.Status)) {
		f.Statuses = []protocol.Status{protocol.Status(p.Status)}
	}
	lost := func(err error) {
		if len(p.Lost) < rows {
			p.Lost = append(p.Lost, htmlpage.Line(err.Error(), htmlpage.LongestTitle))
		}
	}
	listed := view.Listed(r.Context(), s.engine.Heads, f, lost)
	if before := query.Get("before"); validThread(before) {
		at, found := slices.BinarySearchFunc(listed, before, func(l engine.Listed, id string) int { return threadid.NewestFirst(l.Thread, id) })
		if found {
			at++
		}
		listed = listed[at:]
	}
	last := s.rows(r.Context(), &p, listed, f, wanted{words: p.Words, workflow: p.Workflow})
	if last != "" {
		query.Set("before", last)
		p.Next = s.base + "threads?" + query.Encode()
	}
	end(p)
}

// rows fills a page, as far as patience goes, and returns the last thread that was looked
// at, "" if it was the last of all.
func (s *server) rows(ctx context.Context, p *threadsPage, listed []engine.Listed, f view.Filter, q wanted) (last string) {
	const atOnce = 256
	until := s.engine.Env.Now().Add(patience)
	done := 0
	for piece := range slices.Chunk(listed, atOnce) {
		for item := range view.Items(ctx, s.engine, piece, view.Filter{Ended: true}) {
			done++
			last = item.Thread
			if (f.Statuses == nil || slices.Contains(f.Statuses, item.Status)) && q.has(item) {
				p.Rows = append(p.Rows, s.row(item))
			}
			if len(p.Rows) == rows {
				return ifMore(last, done, len(listed))
			}
		}
		if s.engine.Env.Now().After(until) {
			p.Looked, p.Of = done, len(listed)
			return ifMore(last, done, len(listed))
		}
	}
	return ""
}

func ifMore(last string, done, of int) string {
	if done >= of {
		return ""
	}
	return last
}

func (s *server) row(it protocol.ThreadItem) threadRow {
	row := threadRow{
		ID: it.Thread, Title: htmlpage.Line(it.Title, 120), Status: string(it.Status), Mood: htmlpage.Mood(it.Status),
		Link: s.link("thread", it.Thread), Started: htmlpage.WhenOf(it.StartedAt, s.engine.Env.Now()),
	}
	if row.Title == "" {
		row.Title = it.Thread
	}
	if it.WorkflowName != nil {
		row.Workflow = htmlpage.Line(*it.WorkflowName, htmlpage.Longest)
	}
	if it.CurrentRole != nil {
		row.Role = htmlpage.Line(*it.CurrentRole, htmlpage.Longest)
	}
	if it.ForkedFrom != nil {
		row.ForkOf = htmlpage.Line(it.ForkedFrom.Thread, htmlpage.Longest)
	}
	if it.Totals != nil {
		row.Steps, row.Cost = fmt.Sprint(it.Totals.Steps), view.Cost(*it.Totals)
	}
	return row
}

// statsPage is what steps have cost.
type statsPage struct {
	Since   string
	By      map[string]bool
	ByAll   []string
	Heads   []string
	Rows    []statsRow
	Threads int
	Unread  int
	TooLong bool
	Command string
}

type statsRow struct {
	Names              []string
	Steps              int
	Time, Tokens, Cost string
	Bar                int
	All                bool
}

func (s *server) stats(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := statsPage{Since: query.Get("since"), By: map[string]bool{}, ByAll: view.StatsBy()}
	spans := map[string]time.Duration{"1d": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour}
	var after time.Time
	if span, ok := spans[p.Since]; ok {
		after = s.engine.Env.Now().Add(-span)
	} else {
		p.Since = ""
	}
	for _, by := range p.ByAll {
		if slices.Contains(query["by"], by) {
			p.Heads, p.By[by] = append(p.Heads, by), true
		}
	}
	if len(p.Heads) == 0 {
		p.Heads, p.By["workflow"] = []string{"workflow"}, true
	}
	p.Command = "uwf stats --by " + strings.Join(p.Heads, ",")
	if p.Since != "" {
		p.Command += " --since " + p.Since
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*patience)
	defer cancel()
	end := s.begin(w, "stats", "Costs", "")
	sums, err := view.Stats(ctx, s.engine, after, p.Heads) // it fails only if it takes too long
	p.TooLong, p.Threads, p.Unread = err != nil, sums.Threads, len(sums.Unread)
	longest := 0.0
	weight := func(t protocol.Totals) float64 {
		if t.Usage == nil || t.Usage.CostUSD == nil {
			return 0
		}
		return *t.Usage.CostUSD
	}
	for _, row := range sums.Rows {
		longest = max(longest, weight(row.Totals))
	}
	add := func(names []string, t protocol.Totals, all bool) {
		row := statsRow{Names: names, Steps: t.Steps, Time: render.Duration(t.DurationMs), Tokens: view.Tokens(t), Cost: view.Cost(t), All: all}
		if longest > 0 && !all {
			row.Bar = int(weight(t) * 100 / longest)
		}
		p.Rows = append(p.Rows, row)
	}
	for _, row := range sums.Rows[:min(len(sums.Rows), 500)] {
		var names []string
		for _, by := range p.Heads {
			name := htmlpage.Line(row.Of[by], htmlpage.Longest)
			if name == "" {
				name = "(unknown)"
			}
			names = append(names, name)
		}
		add(names, row.Totals, false)
	}
	total := make([]string, len(p.Heads))
	total[0] = "all"
	add(total, sums.Totals, true)
	end(p)
}
