package main

import (
	"cmp"
	"net/http"

	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
)

// inboxPage shows waiting and running threads.
type inboxPage struct {
	Waiting []waiting
	More    int
	Running []running
	MoreRun int
	Lost    []string
}

// waiting is a thread that waits for a person.
type waiting struct {
	about
	Asker, Command string
	Asks           htmlpage.Text
	Last           *subject // what the question is about; nil if unknown
	Form           *form    // nil if the pages are read-only, or if it accepts no input
}

// longestAsk is the maximum number of bytes displayed of a question.
const longestAsk = 2 << 10

// running is a thread with a step in progress.
type running struct {
	about
	Role, Agent string
	Children    *htmlpage.Children
}

// about is a description of a thread.
type about struct {
	ID                              string
	Title, Status, Mood, Link, Cost string
	Workflow, WorkflowLink          string
	Since                           htmlpage.When
}

func (s *server) inbox(w http.ResponseWriter, r *http.Request) error {
	p := inboxPage{}
	end := s.begin(w, "inbox", "Inbox", s.live("", "inbox"))
	lost := func(err error) { p.Lost = append(p.Lost, htmlpage.Line(err.Error(), htmlpage.LongestTitle)) }
	all, atWork, more, moreRun := view.Attention(r.Context(), s.engine, &s.known, 2*rows, lost)
	for _, it := range all {
		item := waiting{
			about: s.aboutOf(it.At, it.Title, it.Since, it.Totals),
			Asks:  htmlpage.TextOf(it.Reason, longestAsk), Command: htmlpage.Line(it.Command, htmlpage.LongestCommand),
		}
		if it.Question != nil {
			item.Asker, item.Asks = htmlpage.Line(it.Question.Role, htmlpage.Longest), htmlpage.TextOf(it.Question.Text, longestAsk)
		}
		if len(p.Waiting) < subjects {
			item.Last = s.subjectOf(r.Context(), it)
		}
		if s.acts {
			if item.Form = s.formOf(it.At, it.Actions); item.Form != nil {
				item.Form.From = "inbox"
			}
		}
		p.Waiting = append(p.Waiting, item)
	}
	for _, at := range atWork {
		p.Running = append(p.Running, running{
			about: s.aboutOf(at.At, at.Title, at.Since, at.Totals), Agent: htmlpage.Line(at.At.Agent, htmlpage.Longest),
			Role:     htmlpage.Line(string(at.CurrentRole), htmlpage.Longest),
			Children: htmlpage.ChildrenOf(at.At.Children, childrenShown, s.threadLink),
		})
	}
	p.More, p.MoreRun = more, moreRun
	s.waits.Store(int64(len(all) + more))
	p.Lost = p.Lost[:min(len(p.Lost), rows)]
	return end(p)
}

func (s *server) aboutOf(at protocol.StepOutput, title string, since *int64, sum *protocol.Totals) about {
	a := about{
		ID: at.Thread, Title: cmp.Or(htmlpage.Line(title, htmlpage.LongestTitle), at.Thread), Status: string(at.Status), Mood: htmlpage.Mood(at.Status),
		Link:     s.link("thread", at.Thread),
		Workflow: htmlpage.Line(at.WorkflowName, htmlpage.Longest), WorkflowLink: s.workflowLink(at.Workflow),
		Since: htmlpage.WhenOf(since, s.engine.Reader.Env.Now()),
	}
	if sum != nil {
		a.Cost = htmlpage.CostOf(*sum)
	}
	return a
}
