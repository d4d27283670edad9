package main

import (
	"context"
	"html/template"
	"io"
	"net/http"
	"slices"

	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
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

func (s *server) workflows(w http.ResponseWriter, r *http.Request) {
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
		s.fail(w, err)
		return
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
		if def, err := c.Definition(ctx, it.Name); err != nil {
			row.Problem = htmlpage.Line(err.Error(), htmlpage.LongestTitle)
		} else {
			row.About = htmlpage.Line(def.Description, htmlpage.LongestTitle)
			if h, err := c.Hash(ctx, def); err == nil {
				known[string(h)] = true
			}
		}
		p.Rows = append(p.Rows, row)
	}
	f := view.Filter{Ended: true}
	listed := view.Listed(ctx, s.engine.Reader.Heads, f, func(err error) { lost(err.Error()) })
	for it := range view.Items(ctx, s.engine, listed[:min(len(listed), latelyRun)], f) {
		if known[string(it.Workflow)] || it.Workflow == "" {
			continue
		}
		known[string(it.Workflow)] = true
		row := workflowRow{Name: string(it.Workflow), Link: s.workflowLink(it.Workflow), Place: string(it.Workflow)}
		if it.WorkflowName != "" {
			row.Name = htmlpage.Line(string(it.WorkflowName), htmlpage.Longest)
		}
		if def, err := c.Stored(ctx, it.Workflow); err != nil {
			row.Problem = htmlpage.Line(err.Error(), htmlpage.LongestTitle)
		} else {
			row.About = htmlpage.Line(def.Description, htmlpage.LongestTitle)
		}
		p.Others = append(p.Others, row)
	}
	end(p)
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

func (s *server) workflow(w http.ResponseWriter, r *http.Request) {
	ctx, name := r.Context(), r.PathValue("name")
	var notes []string
	p, def, err := s.definition(ctx, name, func(text string) {
		notes = append(notes, htmlpage.Line(text,
			htmlpage.LongestTitle))
	})
	if err != nil {
		s.fail(w, err)
		return
	}
	end := s.begin(w, "workflow", htmlpage.Line(def.Definition.Name, htmlpage.Longest), "")
	p.Notes, p.Hash = notes[:min(len(notes), rows)], string(def.Hash)
	p.Workflow = htmlpage.WorkflowOf(ctx, s.engine, def.Definition, most, s.workflowIfStored(ctx))
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
		p.AllRuns = s.threadsOf(def.Definition.Name)
	}
	end(p)
}

// workflowIfStored returns a version of [server.workflowLink] that checks whether the workflow is stored: a
// file may refer to one that has never run.
func (s *server) workflowIfStored(ctx context.Context) func(protocol.Hash) string {
	return func(h protocol.Hash) string {
		if has, err := s.engine.Reader.Store.Has(ctx, h); err != nil || !has {
			return ""
		}
		return s.workflowLink(h)
	}
}

func (s *server) workflowGraph(w http.ResponseWriter, r *http.Request) {
	_, def, err := s.definition(r.Context(), r.PathValue("name"), func(string) {})
	svg := ""
	if err == nil {
		svg, err = htmlpage.WorkflowGraph(def.Definition.Workflow)
	}
	if err != nil {
		refuse(w, http.StatusNotFound, plaintext.Line(err.Error()))
		return
	}
	picture(w, svg)
}

// picture responds with an SVG that may have inline styles and nothing else.
func picture(w http.ResponseWriter, svg string) {
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "+
		"sandbox")
	_, _ = io.WriteString(w, svg) // the client may have disconnected
}
