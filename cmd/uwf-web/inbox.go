package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine/view"
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

// longestAsk is the maximum number of bytes displayed of a question and of the answer that it is about.
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
	end := s.begin(w, "inbox", "Inbox", s.live("", "waiting", "running"))
	lost := func(err error) { p.Lost = append(p.Lost, htmlpage.Line(err.Error(), htmlpage.LongestTitle)) }
	all, atWork, more, moreRun := view.Attention(r.Context(), s.engine, s.known, 2*rows, lost)
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
			if item.Form = s.formOf(r.Context(), it.At, it.Actions); item.Form != nil {
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
		ID: at.Thread, Title: cmp.Or(htmlpage.Line(title, htmlpage.LongestTitle), at.Thread),
		Status: string(at.Status), Mood: htmlpage.Mood(at.Status), Link: s.link("thread", at.Thread),
		Workflow: htmlpage.Line(at.WorkflowName, htmlpage.Longest), WorkflowLink: s.workflowLink(at.Workflow),
		Since: htmlpage.WhenOf(since, s.engine.Reader.Env.Now()),
	}
	if sum != nil {
		a.Cost = htmlpage.CostOf(*sum)
	}
	return a
}

// subjects is the maximum number of cards that show what the question is about. Files are read from git.
const subjects = 20

// subject describes the object of a question.
type subject struct {
	Step   *htmlpage.Step // the last answer of an agent; nil if there is none
	Checks []check        // results of commands after it
	Files  *htmlpage.ChangedFiles
}

// check is the result of a command.
type check struct{ Role, Status, Mood string }

// subjectOf reads what a question is about: the steps since a person last answered. It returns nil if there
// are none.
func (s *server) subjectOf(ctx context.Context, it view.Waiting) *subject {
	const most = 20 // steps
	if it.Question == nil {
		return nil
	}
	chain, err := htmlpage.ChainUpTo(ctx, s.engine, it.At.Head, most)
	if err != nil || len(chain.Steps) == 0 {
		return nil // the thread's page reports it
	}
	c, from := &subject{}, len(chain.Steps)
	workflow, _ := cas.Read[protocol.Workflow](ctx, s.engine.Reader.Store, it.At.Workflow) // an error is shown there
	shown := chain.Shown(ctx, s.engine, htmlpage.Bounds{Text: longestAsk})
	for from > 0 && shown[from-1].By == "" {
		from--
		step := shown[from]
		switch {
		case c.Step != nil:
		case chain.Steps[from].Agent == protocol.CommandAgent:
			c.Checks = slices.Insert(c.Checks, 0, check{Role: step.Role, Status: step.Status,
				Mood: htmlpage.CommandMood(workflow, chain.Steps[from].Role, step.Status)})
		case step.Role == it.Question.Role:
			return nil // its own question
		default:
			step.Link = s.link("thread", it.At.Thread, "step", string(step.Hash))
			c.Step = &step
		}
	}
	if from < len(chain.Steps) {
		first, last := chain.Steps[from], chain.Steps[len(chain.Steps)-1]
		c.Files = s.files.of(string(first.Hash+" "+last.Hash), func() *htmlpage.ChangedFiles {
			return htmlpage.FilesOver(ctx, s.engine, first, last, true)
		})
	}
	return c
}
