package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/dryrun"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/render"
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
	lives       atomic.Int32
	known       *view.Summaries
	files       changedFiles
	waits       atomic.Int64 // when it was counted last
	started     sync.Map     // names of forms that have started a run
}

// parse parses the embedded templates.
func (s *server) parse() (err error) {
	if s.templates, err = htmlpage.Templates(); err != nil {
		return err
	}
	s.templates, err = s.templates.Funcs(template.FuncMap{
		"command": func(text string) string { return htmlpage.Line(text, htmlpage.LongestCommand) },
		"line":    func(text any) string { return htmlpage.Line(fmt.Sprint(text), htmlpage.LongestTitle) },
		"text":    func(text string) htmlpage.Text { return htmlpage.TextOf(text, most) },
		"limits":  view.LimitsText, "worst": dryrun.WorstText, "sums": sumsOf, "duration": render.Duration,
		"value": func(v any) htmlpage.Text { return htmlpage.ValueText(v, most) }, "status": view.StatusOf,
		"lines": func(c view.Change) []htmlpage.Change {
			return htmlpage.Lines(htmlpage.ValueText(c.Old, most).Body, htmlpage.ValueText(c.New, most).Body)
		},
	}).ParseFS(assets, "assets/*.html")
	return err
}

// routes returns the handler behind the guard.
func (s *server) routes(base, token string) http.Handler {
	s.base, s.token = base, token
	mux := http.NewServeMux()
	for path, page := range map[string]page{
		"GET /{$}": s.inbox, "GET /threads": s.threads, "GET /workflows": s.workflows, "GET /diff": s.diff,
		"GET /workflow/{name}": s.workflow, "GET /stats": s.stats, "GET /stats.csv": s.statsCSV,
		"GET /thread/{id}":         s.thread,
		"GET /thread/{id}/changes": s.changes, "GET /thread/{id}/run.html": s.save,
		"GET /thread/{id}/step/{step}": s.step, "GET /thread/{id}/step/{step}/turn/{turn}": s.turn,
	} {
		mux.HandleFunc(path, s.shows(page))
	}
	mux.HandleFunc("GET /workflow/{name}/graph.svg", drawing(s.workflowGraph))
	mux.HandleFunc("GET /thread/{id}/graph.svg", drawing(s.graph))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /style.css", asset(htmlpage.Files, "templates/style.css"))
	mux.HandleFunc("GET /live.js", asset(assets, "assets/live.js"))
	mux.HandleFunc("GET /icon.svg", asset(assets, "assets/icon.svg"))
	if s.acts {
		mux.HandleFunc("POST /thread/{id}/{verb}", s.shows(s.act))
		mux.HandleFunc("GET /start", s.shows(s.start))
		mux.HandleFunc("POST /start", s.shows(s.start))
	}
	return http.StripPrefix(base[:len(base)-1], mux)
}

// page shows a page, or returns why it cannot.
type page func(w http.ResponseWriter, r *http.Request) error

// shows returns the handler of a page. It can answer with parts of the page.
func (s *server) shows(show page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if parts := r.URL.Query().Get("part"); parts != "" {
			w = fragments{w, strings.Split(parts, ",")}
		}
		if err := show(w, r); err != nil {
			s.fail(w, err)
		}
	}
}

// asset returns the handler of an embedded file.
func asset(of fs.FS, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, of, name) }
}

// door serves the sign-in page, again if the token was wrong.
func (s *server) door(w http.ResponseWriter, missed bool) error {
	f := s.frame("", "Sign in", "")
	f.Assets, f.Body = s.base, missed
	return s.write(w, http.StatusUnauthorized, f, "sign-in")
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

// spentLimit compares a limit with the amount spent.
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
	for before := ""; ctx.Err() == nil; {
		begun := s.env.Now()
		if now := prints(s.engine.Reader.Dirs, ""); now != before {
			before = now
			waiting, _, more, _ := view.Attention(ctx, s.engine, s.known, 2*rows, func(error) {})
			s.waits.Store(int64(len(waiting) + more))
		}
		pause(ctx, max(2*calm, 10*s.env.Now().Sub(begun))) // a large home is read less often
	}
}

// show responds with a page.
func (s *server) show(w http.ResponseWriter, name, title, live string, body any) error {
	return s.showAs(w, http.StatusOK, name, title, live, body)
}

func (s *server) showAs(w http.ResponseWriter, status int, name, title, live string, body any) error {
	f := s.frame(name, title, live)
	f.Body = body
	return s.write(w, status, f, "top", name, "end")
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
func (s *server) begin(w http.ResponseWriter, name, title, live string) (end func(body any) error) {
	f := s.frame(name, title, live)
	if _, is := w.(fragments); is {
		return func(body any) error { return s.show(w, name, title, live, body) }
	}
	err := s.write(w, http.StatusOK, f, "top")
	_ = http.NewResponseController(w).Flush() // on failure it is sent with the rest
	return func(body any) error {
		f.Body = body
		return cmp.Or(err, s.write(w, 0, f, name, "end"))
	}
}

// fragments is the response to a page that asks for some of its parts again, with ?part=NAME,…
type fragments struct {
	http.ResponseWriter
	parts []string
}

// wants reports whether a response includes a part of its page.
func wants(w http.ResponseWriter, part string) bool {
	f, some := w.(fragments)
	return !some || slices.Contains(f.parts, part)
}

// write executes templates as one page. A status of 0 means that the response has begun.
func (s *server) write(w http.ResponseWriter, status int, f frame, templates ...string) error {
	var out bytes.Buffer
	if some, is := w.(fragments); is && f.Body != nil {
		f.Live, templates = "", nil
		for _, part := range some.parts[:min(len(some.parts), 20)] {
			if name := f.Page + "/" + part; s.templates.Lookup(name) != nil {
				templates = append(templates, name)
			}
		}
	}
	for _, name := range templates {
		if err := s.templates.ExecuteTemplate(&out, name, f); err != nil {
			return err
		}
	}
	if status != 0 {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
	}
	_, _ = out.WriteTo(w) // the client may have disconnected
	return nil
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
	if err := s.showAs(w, status, "problem", "Cannot show this page", "", p); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
	}
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

func notFound(what string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: what, Hints: []string{"uwf thread list --all"}}
}
