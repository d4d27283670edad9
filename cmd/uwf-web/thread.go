package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// threadPage is a thread with some of its steps.
type threadPage struct {
	htmlpage.Thread
	Shown    []htmlpage.Step
	Earlier  string // link to earlier steps, or ""
	Spent    []spentLimit
	Changes  string           // link to the changes of the whole run; "" if there are none
	Again    []htmlpage.Child // to retry
	Append   bool             // Shown are only the steps after those that the page has
	Last     protocol.Hash    // the newest step
	Head     protocol.Hash    // of the thread
	Lost     string           // why earlier steps cannot be read
	Flight   *flight
	Form     *form
	Compare  string
	Save     string
	Can      map[string]bool // verbs
	Children *htmlpage.Children
	PartOf   *part
	Time     *htmlpage.Timeline
}

// canDo returns the actions available for a thread, in addition to its form.
func canDo(at protocol.ThreadShow, steps int, actions []protocol.Action) map[string]bool {
	moving := at.Status == protocol.StatusRunning
	can := map[string]bool{"seal": at.Status != protocol.StatusCorrupt && steps > 0,
		"apply": !moving && at.Workspace != nil && at.Workspace.Branch != ""}
	for _, a := range actions {
		can[a.Verb] = a.Verb != protocol.VerbMessage || moving || at.Status == protocol.StatusWaitingForChildren
	}
	return can
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
// or "" for a page of many, whose parts are all read again.
func (s *server) live(id string, parts ...string) string {
	seen := prints(s.engine.Reader.Dirs, id)
	return s.base + "events?" + url.Values{"thread": {id}, "part": parts, "seen": {seen}}.Encode()
}

func (s *server) thread(w http.ResponseWriter, r *http.Request) error {
	ctx, id := r.Context(), r.PathValue("id")
	if !threadid.Valid(id) {
		return notFound("thread not found")
	}
	live := s.live(id)
	about, at, err := s.about(ctx, id)
	if err != nil {
		return err
	}
	p := threadPage{Thread: about, PartOf: s.partOf(ctx, id), Compare: s.base + "diff?a=" + url.QueryEscape(id),
		Save: s.link("thread", id, "run.html")}
	p.WorkflowLink = s.workflowLink(at.Workflow)
	p.Graph = template.URL(s.link("thread", id, "graph.svg") + "?at=" + url.QueryEscape(string(at.Head)+string(at.Status)+p.Role))
	if of := at.ForkedFrom; of != nil && threadid.Valid(of.Thread) {
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
	joined := s.joined(ctx, id, chain.Steps)
	newer, kids := chain, joined
	p.Last, p.Head = head, at.Head
	if at := slices.IndexFunc(chain.Steps, func(step thread.Step) bool {
		return string(step.Hash) == r.URL.Query().Get("after")
	}); at >= 0 {
		newer.Steps, p.Append = chain.Steps[at+1:], true
		kids = joined[at+1:]
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
				return htmlpage.FilesOver(ctx, s.engine, newer.Steps[i], newer.Steps[i], true)
			})
		}
	}
	if chain.Before != "" {
		p.Earlier = s.link("thread", id) + "?before=" + string(chain.Before)
	}
	now := htmlpage.Now{Thread: s.threadLink, Joined: func(by thread.Step, c protocol.ChildEnded) htmlpage.Child {
		return joined[by.Index-chain.Steps[0].Index].Find(c.Key)
	}}
	if slices.ContainsFunc(chain.Steps, func(step thread.Step) bool { return step.Files != nil }) {
		p.Changes = s.link("thread", id, "changes")
	}
	if l, spent, err := s.engine.Reader.Spending(ctx, id); err == nil && at.Status != protocol.StatusCorrupt {
		p.Spent = limitsOf(l.Amount(), spent)
	}
	if live != "" {
		now.At = at
		now.Flight, p.Flight = s.flight(ctx, id)
		now.Children, _ = s.engine.Reader.Started(ctx, id) // an error is shown in the list itself
		if p.Children = s.childrenOf(ctx, at.Children, now.Children); p.Children != nil {
			p.Again = slices.DeleteFunc(slices.Clone(p.Children.Shown), func(c htmlpage.Child) bool {
				return c.Status != string(protocol.StatusError) && c.Status != string(protocol.StatusFailed)
			})
		}
	}
	if wants(w, "time") {
		p.Time = htmlpage.TimelineOf(ctx, s.engine, chain.Steps, now)
	}
	if s.acts {
		p.Form = s.formOf(ctx, at.StepOutput, p.Thread.Actions)
		p.Can = canDo(at, p.Steps, p.Thread.Actions)
	}
	return s.show(w, "thread-page", p.Title, live, p)
}

// about returns a thread's state. An invalid ID is reported as not found.
func (s *server) about(ctx context.Context, id string) (htmlpage.Thread, protocol.ThreadShow, error) {
	if !threadid.Valid(id) {
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
		if shown := htmlpage.TurnOf(ctx, s.engine.Reader.Store, h, out.Omitted+i+1, most); shown.Error == "" {
			out.Turns = append(out.Turns, shown) // otherwise the agent has not stored it yet
		}
	}
	if f.Printed != "" && f.Failed == "" {
		shown := htmlpage.ShowTurn(f.PrintedTurn(), most)
		out.Writing = &shown
	}
	if f.Writing != "" && f.Failed == "" {
		if shown := htmlpage.TurnOf(ctx, s.engine.Reader.Store, f.Writing, 0, most); shown.Error == "" {
			out.Writing = &shown
		}
	}
	return f, out
}

// changesPage lists the files that a run has changed.
type changesPage struct {
	Thread, Link string
	Files        *htmlpage.ChangedFiles
}

func (s *server) changes(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	about, at, err := s.about(r.Context(), id)
	if err != nil {
		return err
	}
	p := changesPage{Thread: id, Link: s.link("thread", id)}
	t, err := thread.Open(r.Context(), s.engine.Reader.Store, at.Head)
	if err != nil {
		return err
	}
	var first, last thread.Step
	for step, err := range t.Steps(r.Context()) { // newest first
		if err != nil {
			return err
		}
		if step.Files != nil {
			if first = step; last.Files == nil {
				last = step
			}
		}
	}
	p.Files = htmlpage.FilesOver(r.Context(), s.engine, first, last, true)
	return s.show(w, "changes", "Changes of "+about.Title, "", p)
}

func (s *server) graph(r *http.Request) (svg string, err error) {
	if !threadid.Valid(r.PathValue("id")) {
		return "", notFound("thread not found")
	}
	return htmlpage.Graph(r.Context(), s.engine, r.PathValue("id"))
}

// stepPage is a step with its turns.
type stepPage struct {
	Thread, ThreadLink string
	htmlpage.Step
	Actions       bool
	Before, After string // links to its neighbours, or ""
}

func (s *server) step(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	t, found, err := s.stepAt(r)
	if err != nil {
		return err
	}
	skip, _ := strconv.Atoi(r.URL.Query().Get("skip")) // anything invalid means the first page
	skip = max(skip, 0)
	shown := htmlpage.StepOf(r.Context(), t, s.engine.Reader.Store, found, s.engine.Reader.Env.Now(), htmlpage.Bounds{Text: mostAlone,
		Turns: turnsAtOnce, Skip: skip, Whole: true})
	shown.Files = htmlpage.FilesOver(r.Context(), s.engine, found, found, true)
	shown.Children = s.joinedBy(r.Context(), id, found, childrenShown)
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
		shown.Later = self + "?skip=" + strconv.Itoa(skip+turnsAtOnce)
	}
	p := stepPage{Thread: id, ThreadLink: s.link("thread", id), Step: shown, Actions: s.acts}
	if found.Index > 0 && found.Prev != nil {
		p.Before = s.link("thread", id, "step", string(*found.Prev))
	}
	if head, err := s.engine.Reader.Head(r.Context(), id); err == nil {
		chain, _ := htmlpage.ChainUpTo(r.Context(), s.engine, head, stepsAtOnce) // the thread's page reports errors
		for _, next := range chain.Steps {
			if next.Prev != nil && *next.Prev == found.Hash {
				p.After = s.link("thread", id, "step", string(next.Hash))
			}
		}
	}
	return s.show(w, "step-page", fmt.Sprintf("Step %d: %s", shown.Number, shown.Role), "", p)
}

// stepAt returns the step in the request's URL.
func (s *server) stepAt(r *http.Request) (*thread.Thread, thread.Step, error) {
	h, err := protocol.ParseHash(r.PathValue("step"))
	if err != nil || !threadid.Valid(r.PathValue("id")) {
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
func (s *server) turn(w http.ResponseWriter, r *http.Request) error {
	_, found, err := s.stepAt(r)
	if err != nil {
		return err
	}
	detail, err := thread.ShownDetail(r.Context(), s.engine.Reader.Store, found.Detail)
	n, wrong := strconv.Atoi(r.PathValue("turn"))
	if err == nil && (wrong != nil || n < 1 || n > len(detail.Turns)) {
		err = notFound("turn not found")
	}
	if err != nil {
		return err
	}
	turn, err := thread.ShownTurn(r.Context(), s.engine.Reader.Store, detail.Turns[n-1])
	if err != nil {
		return err
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
	return nil
}

// diffPage compares two threads.
type diffPage struct {
	A, B         string
	Words        string      // of the threads to choose from
	Recent       []threadRow // to choose from, with A and B
	view.Diff                // if both are chosen
	Asked        bool
	Parting      string // where they differ first
	More         int
	ALink, BLink string
}

func (s *server) diff(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	recent := threadsPage{wanted: wantedOf(query)}
	s.find(r.Context(), &recent, "", rows)
	p := diffPage{Words: recent.Words, Recent: recent.Rows}
	p.A, p.B = htmlpage.Line(query.Get("a"), htmlpage.Longest), htmlpage.Line(query.Get("b"), htmlpage.Longest)
	p.Asked = p.A != "" && p.B != ""
	heads := [2]protocol.Hash{}
	for i, id := range []*string{&p.A, &p.B} {
		if *id == "" {
			continue
		}
		found, err := names.In(&s.engine.Reader).Thread(r.Context(), *id)
		if err == nil {
			*id = found
			heads[i], err = s.engine.Reader.Head(r.Context(), found)
		}
		if err != nil && p.Asked {
			return err
		}
		if !slices.ContainsFunc(p.Recent, func(t threadRow) bool { return t.ID == *id }) {
			p.Recent = append(p.Recent, threadRow{about: about{ID: *id, Title: *id}})
		}
	}
	if !p.Asked {
		return s.show(w, "diff", "Compare", "", p)
	}
	var err error
	if p.Diff, err = view.Compare(r.Context(), s.engine.Reader.Store, heads[0], heads[1]); err != nil {
		return err
	}
	if p.Parting = "the start"; p.At != nil && *p.At > 0 {
		p.Parting = "step " + strconv.Itoa(*p.At)
	}
	p.Same -= p.Shared
	p.ALink, p.BLink, p.More = s.link("thread", p.A), s.link("thread", p.B), max(0, len(p.Rest)-2*stepsAtOnce)
	p.Rest = p.Rest[:len(p.Rest)-p.More]
	return s.show(w, "diff", "Compare", "", p)
}

// save serves a thread as a self-contained file, like thread export --html.
func (s *server) save(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, _, err := s.about(r.Context(), id); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+id+`.html"`)
	out := bufio.NewWriter(w)
	err := htmlpage.Export(r.Context(), out, s.engine, id, true)
	if errors.Join(err, out.Flush()) != nil {
		panic(http.ErrAbortHandler) // makes the browser report an incomplete response
	}
	return nil
}
