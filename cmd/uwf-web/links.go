package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/answerlink"
	"github.com/united-workforce/uwf/protocol"
)

// answerPath is the prefix of links in notifications: the only pages without a cookie, and the only ones at
// the address in notify.links.
const answerPath = "/answer/"

// links serves answer links. Loading the page does not use a link up, because chat programs preview posted
// links.
type links struct{ *server }

// takeLinks lets a guard serve answer links if actions are enabled.
func (s *server) takeLinks(g *guard) {
	if !s.acts {
		return
	}
	l := links{server: s}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+answerPath+"style.css", asset(htmlpage.Files, "templates/style.css"))
	mux.HandleFunc("GET "+answerPath+"icon.svg", asset(assets, "assets/icon.svg"))
	mux.HandleFunc("GET "+answerPath+"{word}", l.ask)
	mux.HandleFunc("POST "+answerPath+"{word}", l.answer)
	g.links = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dest, from := r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Origin")
		address, host := l.address(r.Context())
		switch {
		case !g.hosted(r.Host) && (host == "" || strings.ToLower(r.Host) != host):
			refuse(w, http.StatusMisdirectedRequest, "this is not the address of uwf web")
		case host == "":
			refuse(w, http.StatusNotFound, "page not found")
		case slices.Contains([]string{"iframe", "frame", "embed", "object"}, dest):
			refuse(w, http.StatusForbidden, "another site shows this page in a frame")
		case r.Method == http.MethodPost && from != address && (!g.hosted(r.Host) || !g.own(r)):
			refuse(w, http.StatusForbidden, "this request does not come from the link's page; open the link again")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			err := r.ParseForm()
			if err == nil {
				err = r.ParseMultipartForm(maxForm)
			}
			if r.Method == http.MethodPost && err != nil && !errors.Is(err, http.ErrNotMultipart) {
				refuse(w, http.StatusBadRequest, "the form is incomplete or too large") // fields would be missing
				return
			}
			mux.ServeHTTP(w, r)
		}
	})
}

// address returns the URL prefix of links and its host. The config may have changed since the server started;
// if it contains no address, no link is valid.
func (l links) address(ctx context.Context) (address, host string) {
	c, err := l.engine.Reader.Config(ctx)
	// On an error, the sender of notifications reports it, and no link was created.
	if err != nil || c.Notify == nil || c.Notify.Links == nil {
		return "", ""
	}
	at, err := url.Parse(c.Notify.Links.Address)
	if err != nil {
		return "", ""
	}
	host = bare(at.Scheme, at.Host)
	return at.Scheme + "://" + host, host
}

// answerPage shows only the question of a thread.
type answerPage struct {
	Title, Workflow, Asker string
	Asks                   htmlpage.Text
	Ends                   htmlpage.When
	Form                   *form
}

// claim returns what a link allows now. If it allows nothing, it sends a page with the reason and returns
// nil.
func (l links) claim(w http.ResponseWriter, r *http.Request) (*answerlink.Claim, protocol.StepOutput) {
	var at protocol.StepOutput
	c, err := l.kept().Check(r.PathValue("word"), l.engine.Reader.Env.Now())
	status := http.StatusGone
	switch {
	case errors.Is(err, answerlink.ErrForged):
		status = http.StatusForbidden
	case err == nil:
		if at, err = l.engine.Reader.Show(r.Context(), c.Thread); err == nil && (at.Head != c.Head || at.Question == nil) {
			err = errors.New("the question was already answered or is no longer asked")
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
	if err := l.write(w, status, f, "answer-said"); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
	}
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
	if p.Form != nil {
		p.Form.Asks = l.asks(r.Context(), at)
	}
	if about, _, err := l.about(r.Context(), c.Thread); err == nil {
		p.Title = about.Title
	}
	f := l.frame("", p.Title, "")
	f.Assets, f.Body = answerPath, p
	if err := l.write(w, http.StatusOK, f, "answer-page"); err != nil {
		l.fail(w, err)
	}
}

// answer handles an answer. It uses the link up, unless the engine rejects the answer.
func (l links) answer(w http.ResponseWriter, r *http.Request) {
	c, at := l.claim(w, r)
	if c == nil {
		return
	}
	if err := l.stillAsks(r, c.Thread); err != nil {
		l.say(w, http.StatusGone, "Nothing to answer", "the question was already answered; open the link again")
		return
	}
	work := engine.Work{
		Do: engine.DoResume, Prompt: posted(r, "text"), Expect: c.Head, StepOptions: engine.StepOptions{Wake: true},
	}
	if at.Question.Schema != nil {
		value, err := l.server.answer(r, c.Thread)
		if err != nil {
			l.say(w, http.StatusUnprocessableEntity, "Not accepted", err.Error())
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
		_ = l.kept().Unuse(*c) // on failure, the user must answer in another way
		l.say(w, http.StatusUnprocessableEntity, "Not accepted",
			err.Error()+"\n\nOpen the link again to change your answer.")
		return
	}
	l.say(w, http.StatusOK, "Thank you", "Your answer was accepted and the thread continues. This link no longer "+
		"works.")
}

// signed returns the author of an answer, according to the link.
func signed(name string) string {
	const longest = 100
	if name = htmlpage.Line(strings.TrimSpace(name), longest); name == "" {
		name = "unnamed"
	}
	return name + " (by link)"
}
