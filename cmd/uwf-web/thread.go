package main

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// threadPage is a thread with some of its steps.
type threadPage struct {
	htmlpage.Thread
	Shown    []htmlpage.Step
	Earlier  string // link to earlier steps, or ""
	Spent    []spentLimit
	Changes  string // link to the changes of the whole run; "" if there are none
	Again    []again
	Append   bool          // Shown are only the steps after those that the page has
	Last     protocol.Hash // the newest step
	Lost     string        // why earlier steps cannot be read
	Flight   *flight
	Form     *form
	Compare  string
	Save     string
	Can      can
	Children *htmlpage.Children
	PartOf   *part
	Time     *htmlpage.Timeline
}

// can lists the actions available for a thread, in addition to its form.
type can struct{ Retry, Stop, Message, Undo, Redo, Apply, Seal bool }

func canDo(at protocol.ThreadShow, p *threadPage) can {
	whole, moving := at.Status != protocol.StatusCorrupt, at.Status == protocol.StatusRunning
	all := p.Thread.Actions
	return can{
		Retry: has(all, protocol.VerbRetry), Stop: has(all, protocol.VerbStop),
		Message: has(all, protocol.VerbMessage) && (moving || at.Status == protocol.StatusWaitingForChildren),
		Undo:    has(all, protocol.VerbUndo), Redo: has(all, protocol.VerbRedo),
		Apply: !moving && at.Workspace != nil && at.Workspace.Branch != "", Seal: whole && p.Steps > 0,
	}
}

// flight is the step that is running, or whose last try failed.
type flight struct {
	Number      int
	Role, Agent string
	Started     htmlpage.When
	Failed      string
	Turns       []htmlpage.Turn
	Omitted     int
	Writing     *htmlpage.Turn
}

// live returns the URL of change events since now. It must be called before anything is read. id is a thread,
// or "" for a page of many.
func (s *server) live(id, page string) string {
	return s.base + "events?" + url.Values{"thread": {id}, "page": {page}, "seen": {prints(s.engine.Reader.Dirs, id)}}.Encode()
}

func (s *server) thread(w http.ResponseWriter, r *http.Request) {
	ctx, id := r.Context(), r.PathValue("id")
	if !validThread(id) {
		s.fail(w, notFound("thread not found"))
		return
	}
	live := s.live(id, "")
	about, at, err := s.about(ctx, id)
	if err != nil {
		s.fail(w, err)
		return
	}
	p := threadPage{Thread: about, PartOf: s.partOf(ctx, id), Compare: s.base + "diff?a=" + url.QueryEscape(id),
		Save: s.link("thread", id, "run.html")}
	p.WorkflowLink = s.workflowLink(at.Workflow)
	p.Graph = template.URL(s.link("thread", id, "graph.svg") + "?at=" + url.QueryEscape(string(at.Head)+string(at.Status)+p.Role))
	if of := at.ForkedFrom; of != nil && validThread(of.Thread) {
		p.Compare = s.base + "diff?a=" + url.QueryEscape(of.Thread) + "&b=" + url.QueryEscape(id)
	}
	head := at.Head
	if before, err := protocol.ParseHash(r.URL.Query().Get("before")); err == nil {
		head, live = before, ""
	}
	atOnce := stepsAtOnce
	if !wants(w, "steps") && !wants(w, "time") {
		atOnce = 1
	}
	chain, err := htmlpage.ChainUpTo(ctx, s.engine, head, atOnce)
	if err != nil {
		p.Lost = htmlpage.TextOf(err.Error(), most).Body
	}
	kids, named := s.joined(ctx, id, chain.Steps)
	newer := chain
	p.Last = head
	if at := slices.IndexFunc(chain.Steps, func(step thread.Step) bool {
		return string(step.Hash) == r.URL.Query().Get("after")
	}); at >= 0 {
		newer.Steps, p.Append = chain.Steps[at+1:], true
		kids = kids[at+1:]
	}
	if wants(w, "steps") {
		p.Shown = newer.Shown(ctx, s.engine, htmlpage.Bounds{Text: most / 4})
	}
	for i := range p.Shown {
		step := &p.Shown[i]
		step.Link, step.Children = s.link("thread", id, "step", string(step.Hash)), kids[i]
		step.Open = i == len(p.Shown)-1 && live != ""
		if i >= len(p.Shown)-stepsWithFiles {
			step.Files = s.files.of(string(step.Hash), func() *htmlpage.ChangedFiles {
				return htmlpage.FilesOf(ctx, s.engine, chain.Steps[i], true)
			})
		}
	}
	if chain.Before != "" {
		p.Earlier = s.link("thread", id) + "?before=" + string(chain.Before)
	}
	now := htmlpage.Now{
		Thread: s.threadLink, Joined: func(by thread.Step,
			c protocol.ChildEnded) htmlpage.Child {
			return named[by.Hash][c.Key]
		},
	}
	if slices.ContainsFunc(chain.Steps, func(step thread.Step) bool { return step.Files != nil }) {
		p.Changes = s.link("thread", id, "changes")
	}
	if l, spent, err := s.engine.Reader.Spending(ctx, id); err == nil && at.Status != protocol.StatusCorrupt {
		p.Spent = limitsOf(protocol.Amount{CostUSD: l.MaxCostUSD, Tokens: l.MaxTokens, TimeMs: l.MaxTimeMs}, spent)
	}
	for _, child := range at.Children {
		if child.Status == protocol.StatusError || child.Status == protocol.StatusFailed {
			p.Again = append(p.Again, again{child.Key, htmlpage.Line(cmp.Or(child.Label, child.Key), htmlpage.Longest)})
		}
	}
	p.Again = p.Again[:min(len(p.Again), childrenShown)]
	if live != "" {
		now.At = at
		now.Flight, p.Flight = s.flight(ctx, id)
		now.Children, _ = s.engine.Reader.Started(ctx, id) // an error is shown in the list itself
		p.Children = s.childrenOf(ctx, at.Children, now.Children)
	}
	if wants(w, "time") {
		p.Time = htmlpage.TimelineOf(ctx, s.engine, chain.Steps, now)
	}
	if s.acts {
		p.Form = s.formOf(at.StepOutput, p.Thread.Actions)
		p.Can = canDo(at, &p)
	}
	s.show(w, "thread-page", p.Title, live, p)
}

// about returns a thread's state. An invalid ID is reported as not found.
func (s *server) about(ctx context.Context, id string) (htmlpage.Thread, protocol.ThreadShow, error) {
	if !validThread(id) {
		return htmlpage.Thread{}, protocol.ThreadShow{}, notFound("thread not found")
	}
	return htmlpage.ThreadOf(ctx, s.engine, id, htmlpage.Bounds{Text: most})
}

// flight returns the step in flight, or nil if there is none or it is unreadable.
func (s *server) flight(ctx context.Context, id string) (*status.Flight, *flight) {
	f, err := s.engine.Reader.Flight(ctx, id)
	if f == nil && err == nil {
		f, err = s.engine.Reader.Tried(ctx, id)
	}
	if f == nil || err != nil {
		return nil, nil
	}
	const last = 20 // turns
	started := f.Started.UnixMilli()
	out := &flight{
		Number: f.Number, Role: htmlpage.Line(f.Role, htmlpage.Longest), Agent: htmlpage.Line(f.Agent, htmlpage.Longest),
		Started: htmlpage.WhenOf(&started, s.engine.Reader.Env.Now()), Failed: htmlpage.TextOf(f.Failed, most).Body,
		Omitted: max(0, len(f.Turns)-last),
	}
	for i, h := range f.Turns[out.Omitted:] {
		turn, err := thread.ShownTurn(ctx, s.engine.Reader.Store, h)
		if err != nil {
			continue // the agent has not stored it yet
		}
		shown := htmlpage.ShowTurn(turn, most)
		shown.Number = out.Omitted + i + 1
		out.Turns = append(out.Turns, shown)
	}
	if f.Printed != "" && f.Failed == "" {
		shown := htmlpage.ShowTurn(f.PrintedTurn(), most)
		out.Writing = &shown
	}
	if f.Writing != "" && f.Failed == "" {
		if turn, err := thread.ShownTurn(ctx, s.engine.Reader.Store, f.Writing); err == nil {
			shown := htmlpage.ShowTurn(turn, most)
			out.Writing = &shown
		}
	}
	return f, out
}

// again is a child that can be retried.
type again struct{ Key, Label string }

// changesPage is what a run has changed in its files.
type changesPage struct {
	Thread, Link string
	Files        *htmlpage.ChangedFiles
}

func (s *server) changes(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	about, at, err := s.about(r.Context(), id)
	if err != nil {
		s.fail(w, err)
		return
	}
	p := changesPage{Thread: id, Link: s.link("thread", id)}
	t, err := thread.Open(r.Context(), s.engine.Reader.Store, at.Head)
	if err != nil {
		s.fail(w, err)
		return
	}
	var first, last thread.Step
	for step, err := range t.Steps(r.Context()) { // newest first
		if err != nil {
			s.fail(w, err)
			return
		}
		if step.Files != nil {
			if first = step; last.Files == nil {
				last = step
			}
		}
	}
	p.Files = htmlpage.FilesOver(r.Context(), s.engine, first, last)
	s.show(w, "changes", "Changes of "+about.Title, "", p)
}

func (s *server) graph(w http.ResponseWriter, r *http.Request) {
	if !validThread(r.PathValue("id")) {
		refuse(w, http.StatusNotFound, "thread not found")
		return
	}
	svg, err := htmlpage.Graph(r.Context(), s.engine, r.PathValue("id"))
	if err != nil {
		refuse(w, http.StatusNotFound, plaintext.Line(err.Error()))
		return
	}
	picture(w, svg)
}

// stepPage is a step with its turns.
type stepPage struct {
	Thread, ThreadLink string
	htmlpage.Step
	Actions       bool
	Before, After string // links to its neighbours, or ""
}

// stepAfter returns the link to the step after one of the newest, or "".
func (s *server) stepAfter(ctx context.Context, id string, step protocol.Hash) string {
	head, err := s.engine.Reader.Head(ctx, id)
	if err != nil {
		return ""
	}
	chain, _ := htmlpage.ChainUpTo(ctx, s.engine, head, stepsAtOnce) // the thread's page reports what is unreadable
	for _, next := range chain.Steps {
		if next.Prev != nil && *next.Prev == step {
			return s.link("thread", id, "step", string(next.Hash))
		}
	}
	return ""
}

func (s *server) step(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	t, found, err := s.stepAt(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	skip, _ := strconv.Atoi(r.URL.Query().Get("skip")) // anything invalid means the first page
	skip = max(skip, 0)
	shown := htmlpage.StepOf(r.Context(), t, s.engine.Reader.Store, found, s.engine.Reader.Env.Now(), htmlpage.Bounds{Text: mostAlone,
		Turns: turnsAtOnce, Skip: skip, Whole: true})
	shown.Files, shown.Children = htmlpage.FilesOf(r.Context(), s.engine, found, true), s.joinedBy(r.Context(), id, found,
		childrenShown)
	self := s.link("thread", id, "step", string(found.Hash))
	for i := range shown.Turns {
		turn := &shown.Turns[i]
		link := self + "/turn/" + strconv.Itoa(turn.Number)
		turn.Link, turn.Content.Link, turn.Reasoning.Link = link, link, link
		for j := range turn.Calls {
			turn.Calls[j].Args.Link = link
		}
	}
	if skip > 0 {
		shown.Earlier = self + "?skip=" + strconv.Itoa(max(0, skip-turnsAtOnce))
	}
	if skip+turnsAtOnce < shown.AllTurns {
		shown.Latter = self + "?skip=" + strconv.Itoa(skip+turnsAtOnce)
	}
	p := stepPage{Thread: id, ThreadLink: s.link("thread", id), Step: shown, Actions: s.acts}
	if found.Index > 0 && found.Prev != nil {
		p.Before = s.link("thread", id, "step", string(*found.Prev))
	}
	p.After = s.stepAfter(r.Context(), id, found.Hash)
	s.show(w, "step-page", fmt.Sprintf("Step %d: %s", shown.Number, shown.Role), "", p)
}

// stepAt returns the step in the request's URL.
func (s *server) stepAt(r *http.Request) (*thread.Thread, thread.Step, error) {
	h, err := protocol.ParseHash(r.PathValue("step"))
	if err != nil || !validThread(r.PathValue("id")) {
		return nil, thread.Step{}, notFound("step not found")
	}
	t, err := thread.Open(r.Context(), s.engine.Reader.Store, h)
	if err != nil {
		return nil, thread.Step{}, err
	}
	if t.Last == nil {
		return nil, thread.Step{}, notFound("this is a start, not a step")
	}
	return t, *t.Last, nil
}

// turn serves a complete turn as plain text.
func (s *server) turn(w http.ResponseWriter, r *http.Request) {
	_, found, err := s.stepAt(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	detail, err := thread.ShownDetail(r.Context(), s.engine.Reader.Store, found.Detail)
	n, wrong := strconv.Atoi(r.PathValue("turn"))
	if err == nil && (wrong != nil || n < 1 || n > len(detail.Turns)) {
		err = notFound("turn not found")
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	turn, err := thread.ShownTurn(r.Context(), s.engine.Reader.Store, detail.Turns[n-1])
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if turn.Reasoning != "" {
		_, _ = io.WriteString(w, plaintext.Escape(turn.Reasoning)+"\n\n")
	}
	_, _ = io.WriteString(w, plaintext.Escape(turn.Content))
	for _, call := range turn.ToolCalls {
		_, _ = fmt.Fprintf(w, "\n\n%s %s", plaintext.Line(call.Name),
			htmlpage.ShowTurn(protocol.Turn{ToolCalls: []protocol.ToolCall{call}}, 64<<20).Calls[0].Args.Body)
	}
}

// diffPage compares two threads.
type diffPage struct {
	A, B         string
	Recent       []threadRow
	Asked        bool
	Equal        bool
	Shared, Same int
	At           string
	Fields       []diffField
	Rest         []diffRest
	More         int
	ALink, BLink string
}

type diffField struct {
	Name  string
	Lines []htmlpage.Change
}

type diffRest struct {
	Number           int
	Old, New         string
	OldLink, NewLink string
}

func (s *server) diff(w http.ResponseWriter, r *http.Request) {
	p := diffPage{A: htmlpage.Line(r.URL.Query().Get("a"), htmlpage.Longest), B: htmlpage.Line(r.URL.Query().Get("b"),
		htmlpage.Longest)}
	recent := threadsPage{}
	s.find(r.Context(), &recent, "", rows)
	p.Recent = recent.Rows
	if p.Asked = p.A != "" && p.B != ""; !p.Asked {
		s.show(w, "diff", "Compare", "", p)
		return
	}
	heads := [2]protocol.Hash{}
	for i, id := range []*string{&p.A, &p.B} {
		var err error
		if *id, err = names.In(&s.engine.Reader).Thread(r.Context(), *id); err == nil {
			heads[i], err = s.engine.Reader.Head(r.Context(), *id)
		}
		if err != nil {
			s.fail(w, err)
			return
		}
	}
	d, err := view.Compare(r.Context(), s.engine.Reader.Store, heads[0], heads[1])
	if err != nil {
		s.fail(w, err)
		return
	}
	p.Equal, p.Shared, p.Same, p.ALink, p.BLink = d.Equal, d.Shared, d.Same-d.Shared, s.link("thread", p.A),
		s.link("thread", p.B)
	if d.At != nil {
		p.At = "step " + strconv.Itoa(*d.At)
		if *d.At == 0 {
			p.At = "the start"
		}
	}
	for _, c := range d.Changes {
		p.Fields = append(p.Fields, diffField{Name: htmlpage.Line(c.Field, htmlpage.Longest), Lines: linesOf(c)})
	}
	for _, pair := range d.Rest[:min(len(d.Rest), 2*stepsAtOnce)] {
		rest := diffRest{Number: pair.Number}
		rest.Old, rest.OldLink = s.brief(p.A, pair.Old)
		rest.New, rest.NewLink = s.brief(p.B, pair.New)
		p.Rest = append(p.Rest, rest)
	}
	p.More = max(0, len(d.Rest)-2*stepsAtOnce)
	s.show(w, "diff", "Compare", "", p)
}

func (s *server) brief(id string, b *view.Brief) (text, link string) {
	if b == nil {
		return "", ""
	}
	text = htmlpage.Line(b.Role, htmlpage.Longest)
	if status := view.StatusOf(b.Output); status != "" {
		text += " → " + htmlpage.Line(status, htmlpage.Longest)
	}
	return text, s.link("thread", id, "step", string(b.Hash))
}

// linesOf returns the differing lines of a field.
func linesOf(c view.Change) []htmlpage.Change {
	text := func(v any) string {
		return htmlpage.ValueText(v, most).Body
	}
	var lines []htmlpage.Change
	for _, line := range workflowdiff.Lines(text(c.Old), text(c.New)) {
		lines = append(lines, htmlpage.Change{Mark: line[:1], Text: line[1:]})
	}
	return lines
}
