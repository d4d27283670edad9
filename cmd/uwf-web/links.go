package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/answerlink"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
)

// answerPath is where the links of notices lead: the only pages that need no cookie, and
// the only ones under the address of notify.links.
const answerPath = "/answer/"

// links lets people answer who have a link. Loading the page does not use the link up:
// chats preview what is posted in them.
type links struct{ *server }

// takeLinks lets a guard take answer links, if pages may act.
func (s *server) takeLinks(g *guard) {
	if !s.acts {
		return
	}
	l := links{server: s}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+answerPath+"style.css", s.styleSheet())
	mux.HandleFunc("GET "+answerPath+"icon.svg", s.icon())
	mux.HandleFunc("GET "+answerPath+"{word}", l.ask)
	mux.HandleFunc("POST "+answerPath+"{word}", l.answer)
	g.links = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dest, from := r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Origin")
		address, host := l.address(r.Context())
		switch {
		case !g.hosted(r.Host) && (host == "" || r.Host != host):
			refuse(w, http.StatusMisdirectedRequest, "this is not the address of uwf web")
		case host == "":
			refuse(w, http.StatusNotFound, "there is nothing here")
		case slices.Contains([]string{"iframe", "frame", "embed", "object"}, dest):
			refuse(w, http.StatusForbidden, "another site frames it")
		case r.Method == http.MethodPost && from != address && (!g.hosted(r.Host) || !g.own(r)):
			refuse(w, http.StatusForbidden, "this was not sent by the page of the link; open the link again")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			mux.ServeHTTP(w, r)
		}
	})
}

// address is where links lead, and the host in it. The config may have changed since the
// server started: without an address in it no link is valid.
func (l links) address(ctx context.Context) (address, host string) {
	c, err := l.engine.Reader.Config(ctx)
	// the sender of notices reports what is wrong; no link was made
	if err != nil || c.Notify == nil || c.Notify.Links == nil {
		return "", ""
	}
	address = strings.TrimRight(c.Notify.Links.Address, "/")
	if at, err := url.Parse(address); err == nil {
		host = at.Host
	}
	return address, host
}

// answerPage shows the question of a thread and nothing else.
type answerPage struct {
	Title, Workflow, Asker string
	Asks                   htmlpage.Text
	Ends                   htmlpage.When
	Form                   *form
}

// claim is what a link allows now; nil if it allows nothing, and a page says why.
func (l links) claim(w http.ResponseWriter, r *http.Request) (*answerlink.Claim, protocol.StepOutput) {
	var at protocol.StepOutput
	c, err := l.kept().Check(r.PathValue("word"), l.engine.Reader.Env.Now())
	status := http.StatusGone
	switch {
	case errors.Is(err, answerlink.ErrForged):
		status = http.StatusForbidden
	case err == nil:
		if at, err = l.engine.Reader.Show(r.Context(), c.Thread); err == nil && (at.Head != c.Head || at.Question == nil) {
			err = errors.New("the question was answered in another way, or is asked no more")
		}
	}
	if err != nil {
		l.say(w, status, "Nothing to answer", err.Error())
		return nil, at
	}
	return &c, at
}

func (l links) kept() answerlink.Links { return answerlink.Links{Dir: l.engine.Reader.Dirs.Notify()} }

func (l links) say(w http.ResponseWriter, status int, title, text string) {
	f := l.frame("", title, "")
	f.Assets, f.Body = answerPath, htmlpage.TextOf(text, most).Body
	l.write(w, status, f, "answer-said")
}

func (l links) ask(w http.ResponseWriter, r *http.Request) {
	c, at := l.claim(w, r)
	if c == nil {
		return
	}
	can, err := l.engine.Reader.Actions(r.Context(), c.Thread)
	if err != nil {
		l.say(w, http.StatusGone, "Nothing to answer", err.Error())
		return
	}
	p := answerPage{
		Title: at.Thread, Workflow: htmlpage.Line(at.WorkflowName, htmlpage.Longest),
		Asker: htmlpage.Line(at.Question.Role, htmlpage.Longest),
		Asks:  htmlpage.TextOf(at.Question.Text, most), Form: formOf(at, can),
		Ends: htmlpage.WhenOf(&c.Ends, l.engine.Reader.Env.Now()),
	}
	if about, _, err := l.about(r.Context(), c.Thread); err == nil {
		p.Title = about.Title
	}
	f := l.frame("", p.Title, "")
	f.Assets, f.Body = answerPath, p
	l.write(w, http.StatusOK, f, "answer-page")
}

// answer takes an answer. That uses the link up, unless the engine refuses the answer.
func (l links) answer(w http.ResponseWriter, r *http.Request) {
	c, at := l.claim(w, r)
	if c == nil {
		return
	}
	work := engine.Work{Do: engine.DoResume, Prompt: posted(r, "text"), StepOptions: engine.StepOptions{Wake: true}}
	if at.Question.Schema != nil {
		value, err := l.server.answer(r, c.Thread)
		if err != nil {
			l.say(w, http.StatusUnprocessableEntity, "It was not taken", err.Error())
			return
		}
		work = engine.Work{Do: engine.DoAnswer,
			Answer: &engine.Answer{Value: value, By: signed(r.PostFormValue("name")), At: c.Head}}
	}
	if err := l.kept().Use(*c, l.engine.Reader.Env.Now()); err != nil {
		l.say(w, http.StatusGone, "Nothing to answer", err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), startPatience)
	defer cancel()
	e, err := l.open(ctx)
	if err == nil {
		_, err = e.Background(ctx, c.Thread, work)
	}
	if err != nil {
		_ = l.kept().Unuse(*c) // otherwise the person answers in another way
		l.say(w, http.StatusUnprocessableEntity, "It was not taken",
			err.Error()+"\n\nOpen the link again to answer in another way.")
		return
	}
	l.say(w, http.StatusOK, "Thank you", "The answer was taken, and the thread goes on. This link counts no more.")
}

// signed is whose answer it is, as far as the link knows.
func signed(name string) string {
	const longest = 100
	if name = htmlpage.Line(strings.TrimSpace(name), longest); name == "" {
		name = "somebody"
	}
	return name + " (by link)"
}
