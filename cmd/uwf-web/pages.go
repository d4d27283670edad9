package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Bounds of a page.
const (
	most        = 16 << 10        // bytes of a text next to others
	mostAlone   = 256 << 10       // bytes of a text on its step's page
	rows        = 50              // threads
	stepsAtOnce = 100             // steps
	turnsAtOnce = 50              // turns
	patience    = 2 * time.Second // time limit for searching threads
)

// link returns a URL path; names are escaped.
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
	Next                    string // link to older threads, or ""
	Looked, Of              int    // number of threads searched, and their total, if the search was incomplete
	Lost                    []string
}

type threadRow struct {
	ID, Title, Workflow, Status, Mood, Role, Cost, Link, ForkOf string
	WorkflowLink                                                string
	Steps                                                       string
	Started                                                     htmlpage.When
}

// wanted is the filter for rows.
type wanted struct{ words, workflow string }

func (q wanted) has(it protocol.ThreadItem) bool {
	name := ""
	if it.WorkflowName != "" {
		name = string(it.WorkflowName)
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
		Words: htmlpage.Line(query.Get("q"), htmlpage.LongestTitle), Status: query.Get("status"),
		Workflow: query.Get("workflow"),
		Statuses: protocol.Statuses(),
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
	listed := view.Listed(r.Context(), s.engine.Reader.Heads, f, lost)
	if before := query.Get("before"); validThread(before) {
		at, found := slices.BinarySearchFunc(listed, before, func(l status.Listed,
			id string) int {
			return threadid.NewestFirst(l.Thread, id)
		})
		if found {
			at++
		}
		listed = listed[at:]
	}
	last := s.rows(r.Context(), &p, listed, f, wanted{words: p.Words, workflow: p.Workflow}, rows)
	if last != "" {
		query.Set("before", last)
		p.Next = s.base + "threads?" + query.Encode()
	}
	end(p)
}

// rows fills a page until patience runs out. It returns the last thread examined, or "" at the end.
func (s *server) rows(ctx context.Context, p *threadsPage, listed []status.Listed, f view.Filter, q wanted,
	most int) (last string) {
	const atOnce = 256
	until := s.engine.Reader.Env.Now().Add(patience)
	done := 0
	for piece := range slices.Chunk(listed, atOnce) {
		for item := range view.Items(ctx, s.engine, piece, view.Filter{Ended: true}) {
			done++
			last = item.Thread
			if (f.Statuses == nil || slices.Contains(f.Statuses, item.Status)) && q.has(item) {
				p.Rows = append(p.Rows, s.row(item))
			}
			if len(p.Rows) == most {
				return ifMore(last, done, len(listed))
			}
		}
		if s.engine.Reader.Env.Now().After(until) {
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

// threadsOf returns the link to a workflow's threads.
func (s *server) threadsOf(name string) string {
	return s.base + "threads?" + url.Values{"workflow": {name}}.Encode()
}

func (s *server) row(it protocol.ThreadItem) threadRow {
	row := threadRow{
		ID: it.Thread, Title: htmlpage.Line(it.Title, 120), Status: string(it.Status), Mood: htmlpage.Mood(it.Status),
		Link: s.link("thread", it.Thread), WorkflowLink: s.workflowLink(it.Workflow),
		Started: htmlpage.WhenOf(it.StartedAt, s.engine.Reader.Env.Now()),
	}
	if row.Title == "" {
		row.Title = it.Thread
	}
	if it.WorkflowName != "" {
		row.Workflow = htmlpage.Line(string(it.WorkflowName), htmlpage.Longest)
	}
	if it.CurrentRole != "" {
		row.Role = htmlpage.Line(string(it.CurrentRole), htmlpage.Longest)
	}
	if it.ForkedFrom != nil {
		row.ForkOf = htmlpage.Line(it.ForkedFrom.Thread, htmlpage.Longest)
	}
	if it.Totals != nil {
		row.Steps, row.Cost = fmt.Sprint(it.Totals.Steps), view.Cost(*it.Totals)
	}
	return row
}
