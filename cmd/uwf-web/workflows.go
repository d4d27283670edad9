package main

import (
	"cmp"
	"context"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Bounds of the workflow pages.
const (
	mostWorkflows = 200
	latelyRun     = 200 // threads searched for workflows without a name
)

// workflowsPage is an index.
type workflowsPage struct {
	Rows   []workflowRow
	More   int
	Others []workflowRow // unnamed workflows of recent threads
	Lost   []string
}

type workflowRow struct{ Name, Link, About, Place, Problem string }

func (r workflowRow) described(def workflow.Definition, err error) workflowRow {
	if r.About = htmlpage.Line(def.Description, htmlpage.LongestTitle); err != nil {
		r.Problem = htmlpage.Line(err.Error(), htmlpage.LongestTitle)
	}
	return r
}

func (s *server) workflows(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	p := workflowsPage{}
	lost := func(text string) {
		if len(p.Lost) < rows {
			p.Lost = append(p.Lost, htmlpage.Line(text, htmlpage.LongestTitle))
		}
	}
	c := catalog.Of(s.engine)
	c.Warn, c.Note = lost, lost
	items, err := c.List(ctx)
	if err != nil {
		return err
	}
	end := s.begin(w, "workflows", "Workflows", "")
	p.More = max(0, len(items)-mostWorkflows)
	known := map[string]bool{}
	for i, it := range items {
		known[it.Hash] = true
		if i >= mostWorkflows {
			continue
		}
		row := workflowRow{Name: htmlpage.Line(it.Name, htmlpage.Longest), Link: s.link("workflow", it.Name),
			Place: "registered as " + it.Hash}
		if it.Origin == catalog.OriginProject {
			row.Place = htmlpage.Line(it.Path, htmlpage.LongestTitle)
		}
		def, err := c.Definition(ctx, it.Name)
		if err == nil {
			h, _ := c.Hash(ctx, def) // "" is no workflow
			known[string(h)] = true
		}
		p.Rows = append(p.Rows, row.described(def, err))
	}
	f := view.Filter{Ended: true}
	listed := view.Listed(ctx, s.engine.Reader.Heads, f, func(err error) { lost(err.Error()) })
	for it := range view.Items(ctx, s.engine, listed[:min(len(listed), latelyRun)], f) {
		if known[string(it.Workflow)] || it.Workflow == "" {
			continue
		}
		known[string(it.Workflow)] = true
		row := workflowRow{Name: cmp.Or(htmlpage.Line(string(it.WorkflowName), htmlpage.Longest), string(it.Workflow)),
			Link: s.workflowLink(it.Workflow), Place: string(it.Workflow)}
		def, err := c.Stored(ctx, it.Workflow)
		p.Others = append(p.Others, row.described(def, err))
	}
	return end(p)
}

// workflowLink returns the page of a stored workflow, or "".
func (s *server) workflowLink(h protocol.Hash) string {
	if !h.Valid() {
		return ""
	}
	return s.link("workflow", string(h))
}

// workflowPage is a workflow with its runs.
type workflowPage struct {
	htmlpage.Workflow
	Hash, Place  string
	Graph        template.URL
	GraphProblem string
	Notes        []string
	Runs         []threadRow
	AllRuns      string
}

// definition returns the workflow in the URL: a hash or a registered name, never a path.
func (s *server) definition(ctx context.Context, name string,
	note func(string)) (page workflowPage, def workflow.Used, err error) {
	c := catalog.Of(s.engine)
	c.Warn, c.Note = note, note
	if h := protocol.Hash(name); h.Valid() {
		def.Hash = h
		def.Definition, err = c.Stored(ctx, h)
		return page, def, err
	}
	items, err := c.List(ctx)
	if err != nil {
		return page, def, err
	}
	i := slices.IndexFunc(items, func(it protocol.WorkflowItem) bool { return it.Name == name })
	if i < 0 {
		return page, def, &protocol.Error{Code: protocol.CodeNotFound, Message: "workflow not found",
			Hints: []string{"uwf workflow list"}}
	}
	if page.Place = htmlpage.Line(items[i].Path, htmlpage.LongestTitle); page.Place == "" {
		page.Place = "registered"
	}
	if def.Definition, err = c.Definition(ctx, name); err == nil {
		def.Hash, err = c.Hash(ctx, def.Definition)
	}
	return page, def, err
}

func (s *server) workflow(w http.ResponseWriter, r *http.Request) error {
	ctx, name := r.Context(), r.PathValue("name")
	var notes []string
	p, def, err := s.definition(ctx, name, func(text string) {
		notes = append(notes, htmlpage.Line(text,
			htmlpage.LongestTitle))
	})
	if err != nil {
		return err
	}
	end := s.begin(w, "workflow", htmlpage.Line(def.Definition.Name, htmlpage.Longest), "")
	p.Notes, p.Hash = notes[:min(len(notes), rows)], string(def.Hash)
	p.Workflow = htmlpage.WorkflowOf(ctx, s.engine, def.Definition, most, func(h protocol.Hash) string {
		if has, err := s.engine.Reader.Store.Has(ctx, h); err != nil || !has {
			return "" // a file can refer to a workflow that has never run
		}
		return s.workflowLink(h)
	})
	if _, err := htmlpage.WorkflowGraph(def.Definition.Workflow); err != nil {
		p.GraphProblem = htmlpage.Line(err.Error(), htmlpage.LongestTitle)
	} else {
		p.Graph = template.URL(s.link("workflow", name, "graph.svg"))
	}
	found := threadsPage{wanted: wanted{Workflow: def.Definition.Name}}
	const runs = 20
	last := s.find(ctx, &found, "", runs)
	p.Runs, p.Notes = found.Rows, append(p.Notes, found.Lost...)
	if last != "" {
		p.AllRuns = s.base + "threads?" + url.Values{"workflow": {def.Definition.Name}}.Encode()
	}
	return end(p)
}

func (s *server) workflowGraph(r *http.Request) (svg string, err error) {
	_, def, err := s.definition(r.Context(), r.PathValue("name"), func(string) {})
	if err != nil {
		return "", err
	}
	return htmlpage.WorkflowGraph(def.Definition.Workflow)
}

// drawing returns the handler of an SVG, which may have inline styles and nothing else.
func drawing(draw func(*http.Request) (svg string, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		svg, err := draw(r)
		if err != nil {
			refuse(w, http.StatusNotFound, plaintext.Line(err.Error()))
			return
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox")
		_, _ = io.WriteString(w, svg) // the client may have disconnected
	}
}
