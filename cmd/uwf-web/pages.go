package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

// Bounds of a page.
const (
	most           = 16 << 10  // bytes of a text next to others
	mostAlone      = 256 << 10 // bytes of a text on its step's page
	rows           = 50        // threads
	stepsAtOnce    = 100       // steps
	stepsWithFiles = 10        // newest steps with their changed files, which are read from git
	turnsAtOnce    = 50        // turns
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
	wanted
	Statuses            []protocol.Status
	Workflows, Projects []string // of all threads, to choose from
	Sorts               []string
	Rows                []threadRow
	Next                string // link to the threads after these; "" if there are none
	Found               int
	Lost                []string
}

// threadRow is a thread in a list. It is Since its start.
type threadRow struct {
	about
	Role, ForkOf, Steps string
}

// wanted selects and sorts threads.
type wanted struct{ Words, Status, Workflow, Project, Sort string }

// sorts are the orders of the list; the first is the order of [view.Listed].
var sorts = []string{"newest", "oldest", "changed last", "cost"}

func wantedOf(query url.Values) wanted {
	return wanted{
		Words: htmlpage.Line(query.Get("q"), htmlpage.LongestTitle), Status: query.Get("status"),
		Workflow: query.Get("workflow"), Project: query.Get("project"), Sort: query.Get("sort"),
	}
}

func (q wanted) has(id string, it view.Summary) bool {
	if q.Workflow != "" && it.Workflow != q.Workflow || q.Project != "" && it.Project != q.Project ||
		q.Status != "" && it.Status != protocol.Status(q.Status) {
		return false
	}
	if q.Words == "" {
		return true
	}
	all := strings.ToLower(it.Title + "\n" + it.Workflow + "\n" + id)
	for word := range strings.FieldsSeq(strings.ToLower(q.Words)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// compare orders two threads.
func (q wanted) compare(a, b view.Summary) int {
	switch q.Sort {
	case "oldest":
		return cmp.Compare(a.Started, b.Started)
	case "changed last":
		return cmp.Compare(b.Since, a.Since)
	case "cost":
		return cmp.Compare(b.CostUSD, a.CostUSD)
	}
	return 0
}

func (s *server) threads(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	end := s.begin(w, "threads", "Threads", s.live("", "threads"))
	p := threadsPage{wanted: wantedOf(query), Statuses: protocol.Statuses(), Sorts: sorts}
	if last := s.find(r.Context(), &p, query.Get("after"), rows); last != "" {
		query.Set("after", last)
		p.Next = s.base + "threads?" + query.Encode()
	}
	return end(p)
}

// find fills a page with the threads after one, and returns the last of them if there are more.
func (s *server) find(ctx context.Context, p *threadsPage, after string, most int) (last string) {
	listed := view.Listed(ctx, s.engine.Reader.Heads, view.Filter{Ended: true}, func(err error) {
		if len(p.Lost) < rows {
			p.Lost = append(p.Lost, htmlpage.Line(err.Error(), htmlpage.LongestTitle))
		}
	})
	var found []int // in listed
	known := s.known.Of(ctx, s.engine, listed)
	workflows, projects := map[string]bool{}, map[string]bool{}
	for i, sum := range known {
		workflows[sum.Workflow], projects[sum.Project] = true, true
		if p.has(listed[i].Thread, sum) {
			found = append(found, i)
		}
	}
	p.Workflows, p.Projects, p.Found = choices(workflows), choices(projects), len(found)
	slices.SortStableFunc(found, func(a, b int) int { return p.compare(known[a], known[b]) })
	found = found[1+slices.IndexFunc(found, func(i int) bool { return listed[i].Thread == after }):]
	shown := make([]status.Listed, min(len(found), most))
	for n := range shown {
		shown[n] = listed[found[n]]
	}
	for item := range view.Items(ctx, s.engine, shown, view.Filter{Ended: true}) {
		p.Rows = append(p.Rows, s.row(item))
	}
	if len(found) <= most {
		return ""
	}
	return shown[most-1].Thread
}

// choices returns the names for a select, as many as a person can look through.
func choices(names map[string]bool) []string {
	delete(names, "")
	all := slices.Sorted(maps.Keys(names))
	return all[:min(len(all), 4*rows)]
}

func (s *server) row(it protocol.ThreadItem) threadRow {
	row := threadRow{about: s.aboutOf(protocol.StepOutput{Thread: it.Thread, Status: it.Status, Workflow: it.Workflow,
		WorkflowName: string(it.WorkflowName)}, it.Title, it.StartedAt, it.Totals),
		Role: htmlpage.Line(string(it.CurrentRole), htmlpage.Longest)}
	if it.ForkedFrom != nil {
		row.ForkOf = htmlpage.Line(it.ForkedFrom.Thread, htmlpage.Longest)
	}
	if it.Totals != nil {
		row.Steps = fmt.Sprint(it.Totals.Steps)
	}
	return row
}

// changedFiles remembers the file changes of steps, which never change and are slow to read from git.
type changedFiles struct {
	mu    sync.Mutex
	known map[string]*htmlpage.ChangedFiles
}

// of returns the changes with a key, reading them if they are unknown.
func (c *changedFiles) of(key string, read func() *htmlpage.ChangedFiles) *htmlpage.ChangedFiles {
	const most = 200 // each has up to 64 KiB of lines
	c.mu.Lock()
	files, ok := c.known[key]
	c.mu.Unlock()
	if ok {
		return files
	}
	if files = read(); files != nil && files.Problem == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.known == nil || len(c.known) >= most {
			c.known = map[string]*htmlpage.ChangedFiles{}
		}
		c.known[key] = files
	}
	return files
}
