package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/engine/view/htmlpage/markdown"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/threadid"
)

//go:embed assets
var assets embed.FS

// server serves the pages of a home. Lists choose by summaries; whatever a page shows is read again.
type server struct {
	engine      *engine.Engine // read-only
	env         env.Env
	acts        bool // actions are enabled
	base, token string
	home, host  string // their names
	templates   *template.Template
	style       string
	lives       atomic.Int32
	known       view.Summaries
	files       changedFiles
	waits       atomic.Int64 // when it was counted last
	started     onces
}

// parse parses the embedded templates.
func (s *server) parse() error {
	var err error
	if s.templates, err = htmlpage.Templates(markdown.Render); err != nil {
		return err
	}
	if s.templates, err = s.templates.ParseFS(assets, "assets/*.html"); err != nil {
		return err
	}
	s.style, err = htmlpage.Style()
	return err
}

// routes returns the handler behind the guard.
func (s *server) routes(base, token string) http.Handler {
	s.base, s.token = base, token
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", partly(s.inbox))
	mux.HandleFunc("GET /threads", partly(s.threads))
	mux.HandleFunc("GET /workflows", s.workflows)
	mux.HandleFunc("GET /workflow/{name}", s.workflow)
	mux.HandleFunc("GET /workflow/{name}/graph.svg", s.workflowGraph)
	mux.HandleFunc("GET /stats", s.stats)
	mux.HandleFunc("GET /stats.csv", s.statsCSV)
	mux.HandleFunc("GET /diff", s.diff)
	mux.HandleFunc("GET /thread/{id}", partly(s.thread))
	mux.HandleFunc("GET /thread/{id}/graph.svg", s.graph)
	mux.HandleFunc("GET /thread/{id}/changes", s.changes)
	mux.HandleFunc("GET /thread/{id}/run.html", s.save)
	mux.HandleFunc("GET /thread/{id}/step/{step}", partly(s.step))
	mux.HandleFunc("GET /thread/{id}/step/{step}/turn/{turn}", s.turn)
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /style.css", s.styleSheet())
	mux.HandleFunc("GET /live.js", s.asset("text/javascript; charset=utf-8", func() ([]byte,
		error) {
		return assets.ReadFile("assets/live.js")
	}))
	mux.HandleFunc("GET /icon.svg", s.icon())
	if s.acts {
		mux.HandleFunc("POST /thread/{id}/{verb}", s.act)
		mux.HandleFunc("GET /start", s.start)
		mux.HandleFunc("POST /start", s.start)
	}
	return http.StripPrefix(base[:len(base)-1], mux)
}

// door serves the sign-in page.
func (s *server) door(w http.ResponseWriter, p signInPage) {
	f := s.frame("", "Sign in", "")
	f.Assets, f.Body = s.base, p
	s.write(w, http.StatusUnauthorized, f, "sign-in")
}

func (s *server) styleSheet() http.HandlerFunc {
	return s.asset("text/css; charset=utf-8", func() ([]byte, error) { return []byte(s.style), nil })
}

func (s *server) icon() http.HandlerFunc {
	return s.asset("image/svg+xml", func() ([]byte, error) { return assets.ReadFile("assets/icon.svg") })
}

func (s *server) asset(kind string, read func() ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		data, err := read()
		if err != nil {
			s.fail(w, err)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data) // the client may have disconnected
	}
}

// frame is the data common to all pages.
type frame struct {
	Base, Token string
	Assets      string // location of the style sheet for a page without other links
	Title, Page string
	Live        string // URL of change events, or ""
	Actions     bool
	Home, Host  string
	Waiting     int64       // threads that need a person
	Today       *spentLimit // nil if there is no limit for a day
	Body        any
}

// spentLimit is how much of a limit was spent.
type spentLimit struct {
	Name, Spent, Limit string
	Percent            int
}

// limitsOf returns the limits that are set.
func limitsOf(limit, spent protocol.Amount) (all []spentLimit) {
	for i, m := range protocol.Measures() {
		most, used := limit.Figures()[i], spent.Figures()[i]
		if most > 0 {
			all = append(all, spentLimit{Name: m.Fact, Spent: m.Text(used), Limit: m.Text(most) + m.Unit, Percent: int(min(100, 100*used/most))})
		}
	}
	return all
}

// count keeps the number of threads that wait up to date until ctx ends. It also reads the summaries of all
// threads before the first page needs them.
func (s *server) count(ctx context.Context) {
	changed := changes(ctx, s.engine.Reader.Dirs, "", "")
	for {
		begun := s.env.Now()
		waiting, _, more, _ := view.Attention(ctx, s.engine, &s.known, 2*rows, func(error) {})
		s.waits.Store(int64(len(waiting) + more))
		pause(ctx, max(calm, 10*s.env.Now().Sub(begun))) // a large home is read less often
		if _, open := <-changed; !open {
			return
		}
	}
}

// show responds with a page.
func (s *server) show(w http.ResponseWriter, name, title, live string, body any) {
	s.showAs(w, http.StatusOK, name, title, live, body)
}

func (s *server) showAs(w http.ResponseWriter, status int, name, title, live string, body any) {
	f := s.frame(name, title, live)
	f.Body = body
	s.write(w, status, f, "top", name, "end")
}

func (s *server) frame(name, title, live string) frame {
	f := frame{Base: s.base, Token: s.token, Title: title, Page: name, Live: live, Actions: s.acts, Waiting: s.waits.Load()}
	if name == "" {
		return f // of people who have not signed in
	}
	f.Home, f.Host = s.home, s.host
	if spent, limit, err := s.engine.SpentToday(context.Background()); err == nil {
		if all := limitsOf(limit, spent); len(all) > 0 {
			f.Today = &all[0]
		}
	}
	return f
}

// name sets the names of the home and this machine, which the header of each page has.
func (s *server) name() {
	host, _ := os.Hostname() // "" is not shown
	at := s.engine.Reader.Dirs.Home
	if below, ok := strings.CutPrefix(at, home.User(s.env)+string(os.PathSeparator)); ok {
		at = "~/" + filepath.ToSlash(below)
	}
	s.home, s.host = htmlpage.Line(at, htmlpage.Longest), htmlpage.Line(host, htmlpage.Longest)
}

// begin sends the beginning of a slow page, so that the user sees something; the returned function sends the
// rest.
func (s *server) begin(w http.ResponseWriter, name, title, live string) (end func(body any)) {
	f := s.frame(name, title, live)
	if _, is := w.(fragments); is {
		return func(body any) { s.show(w, name, title, live, body) }
	}
	s.write(w, http.StatusOK, f, "top")
	_ = http.NewResponseController(w).Flush() // on failure it is sent with the rest
	return func(body any) {
		f.Body = body
		s.write(w, 0, f, name, "end")
	}
}

// fragments is the response to a page that asks for some of its parts again, with ?part=NAME,…
type fragments struct {
	http.ResponseWriter
	parts []string
}

func templateNames(page string, parts []string) (names []string) {
	for _, part := range parts[:min(len(parts), 20)] {
		names = append(names, page+"/"+part)
	}
	return names
}

// partly lets the handler of a page answer with parts of it.
func partly(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if parts := r.URL.Query().Get("part"); parts != "" {
			w = fragments{w, strings.Split(parts, ",")}
		}
		page(w, r.WithContext(onPage(r.Context())))
	}
}

// wants reports whether a response includes a part of its page.
func wants(w http.ResponseWriter, part string) bool {
	f, some := w.(fragments)
	return !some || slices.Contains(f.parts, part)
}

// write executes templates as one page. A status of 0 means that the response has begun.
func (s *server) write(w http.ResponseWriter, status int, f frame, templates ...string) {
	var out bytes.Buffer
	if some, is := w.(fragments); is && f.Body != nil {
		f.Live = ""
		templates = slices.DeleteFunc(templateNames(f.Page, some.parts), func(name string) bool {
			return s.templates.Lookup(name) == nil
		})
	}
	for _, name := range templates {
		if err := s.templates.ExecuteTemplate(&out, name, f); err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
	}
	if status != 0 {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
	}
	_, _ = out.WriteTo(w) // the client may have disconnected
}

// problem is an error page.
type problem struct {
	Message string
	Hints   []string
	Back    string
}

// fail responds with an error page.
func (s *server) fail(w http.ResponseWriter, err error) {
	status, p := http.StatusInternalServerError, problem{Message: htmlpage.TextOf(err.Error(), most).Body,
		Hints: hintsOf(err), Back: s.base}
	if errors.Is(err, cas.ErrNotFound) || errors.Is(err, &protocol.Error{Code: protocol.CodeNotFound}) {
		status = http.StatusNotFound
	}
	s.showAs(w, status, "problem", "Cannot show this page", "", p)
}

func hintsOf(err error) []string {
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		return nil
	}
	var lines []string
	for _, hint := range hints.All("", coded) {
		lines = append(lines, htmlpage.Line(hint, htmlpage.LongestCommand))
	}
	return lines
}

// validThread prevents an invalid ID from becoming a path or an argument.
func validThread(id string) bool { return threadid.Valid(id) }

func notFound(what string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: what, Hints: []string{"uwf thread list --all"}}
}
