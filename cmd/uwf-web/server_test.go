package main

import (
	"bufio"
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// hostile is a text that may occur anywhere.
const hostile = "</pre><script>alert(1)</script><svg onload=alert(2)>\"'><img src=x onerror=alert(3)>[x](javascript:alert(4))</style>\u202eabc\x1b[31m\x00"

const loop = `name: loop
description: "<script>alert(5)</script>"
roles:
  writer:
    description: "<img src=x onerror=alert(6)>"
    goal: Write.
    capabilities: []
    procedure: Write.
    output: A text.
    frontmatter: {type: object, properties: {$status: {enum: [more, done]}, text: {type: string}}, required: [$status]}
  judge:
    description: A person.
    person: true
    frontmatter: {type: object, properties: {$status: {enum: [yes, no]}, "<b>why</b>": {type: string, description: "<script>alert(7)</script>"}}, required: [$status]}
graph:
  $START: {_: {role: writer, prompt: Write.}}
  writer: {more: {role: writer, prompt: Again.}, done: {role: judge, prompt: "</textarea><script>alert(8)</script>"}}
  judge: {"yes": $END, "no": writer}
`

// site is a server with a new home, and a browser that has opened its address.
type site struct {
	*testing.T
	server *server
	guard  *guard
	http   *httptest.Server
	client *http.Client
	engine *engine.Engine  // read-write
	files  *protocol.Files // files of the steps to make
	dir    string
}

func newSite(t *testing.T, acts bool) *site {
	t.Helper()
	home := t.TempDir()
	s := &site{T: t, dir: t.TempDir()}
	exe, err := os.Executable()
	require.NoError(t, err)
	process := env.Env{Dir: s.dir, Environ: []string{"UWF_HOME=" + home, "PATH=/usr/bin:/bin", "USER=ann"}, Now: time.Now,
		Rand: rand.Reader, Exe: exe}
	s.engine, err = engine.Open(t.Context(), process, engine.Options{})
	require.NoError(t, err)
	s.server, err = newServer(t.Context(), process, "", "")
	require.NoError(t, err)
	s.server.acts = acts
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.guard.ServeHTTP(w, r) }))
	t.Cleanup(s.http.Close)
	at, err := local(s.http.Listener.Addr().String())
	require.NoError(t, err)
	s.guard, err = newGuard(at, rand.Reader, s.server)
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s.client = &http.Client{Jar: jar}
	s.get(s.guard.address(), http.StatusOK)
	return s
}

// get loads a page; path may be a complete URL.
func (s *site) get(path string, status int) string {
	s.Helper()
	if !strings.HasPrefix(path, "http") {
		path = s.http.URL + s.guard.base + path
	}
	answer, err := s.client.Get(path)
	require.NoError(s, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	require.Equal(s, status, answer.StatusCode, "%s: %s", path, body[:min(len(body), 2000)])
	return string(body)
}

// post sends a form as the browser does.
func (s *site) post(path string, form url.Values) (status int, body string) {
	s.Helper()
	sent := url.Values{"token": {s.guard.form}}
	maps.Copy(sent, form)
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.http.URL+s.guard.base+path, strings.NewReader(sent.Encode()))
	require.NoError(s, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.http.URL)
	answer, err := s.client.Do(r)
	require.NoError(s, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	return answer.StatusCode, string(text)
}

// start starts a thread.
func (s *site) start(task string) string {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.dir, "loop.yaml"), []byte(loop), 0o600))
	h, err := catalog.Of(s.engine).Find(s.Context(), "loop.yaml")
	require.NoError(s, err)
	id, err := s.engine.Start(s.Context(), protocol.Start{Workflow: h, Prompt: task, Cwd: s.dir}, engine.StartOptions{})
	require.NoError(s, err)
	return id
}

// step makes a step, as another process would.
func (s *site) step(id, status, text string, turns ...string) protocol.Hash {
	s.Helper()
	ctx := s.Context()
	head, err := s.engine.Reader.Heads.Head(ctx, id)
	require.NoError(s, err)
	t, err := thread.Open(ctx, s.engine.Reader.Store, head)
	require.NoError(s, err)
	wf, err := t.Workflow(ctx)
	require.NoError(s, err)
	b := cas.NewBatch(s.engine.Reader.Store, time.Now)
	output, err := b.AddValue(ctx, wf.Roles["writer"].Frontmatter, map[string]any{"$status": status, "text": text})
	require.NoError(s, err)
	detail := protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Model: text, Turns: []protocol.Hash{}}
	for _, content := range turns {
		h, err := b.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: content, Reasoning: text, ToolCalls: []protocol.ToolCall{{ID: "1", Name: text, Args: map[string]any{text: text}}}})
		require.NoError(s, err)
		detail.Turns = append(detail.Turns, h)
	}
	d, err := b.Add(ctx, detail)
	require.NoError(s, err)
	next := protocol.Step{
		Start: t.StartHash, Index: t.Len(), Visits: map[string]int{"writer": t.Len() + 1}, Role: "writer", Output: output, Detail: d, Agent: text,
		EdgePrompt: text, Cwd: s.dir, StartedAtMs: 1000, CompletedAtMs: 3000, SessionID: "s", ExtractedBy: protocol.ByValue,
	}
	if next.Files = s.files; s.files != nil {
		next.Root = s.dir
	}
	if t.Len() > 0 {
		next.Prev = &head
	}
	h, err := b.Add(ctx, next)
	require.NoError(s, err)
	require.NoError(s, b.Commit(ctx))
	require.NoError(s, s.engine.Reader.Heads.Move(ctx, id, head, h))
	return h
}

// A client that was not shown the address is rejected however it connects, and every response has the
// headers.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("x")
	home := s.http.URL + s.guard.base
	cookie := cookieName + "=" + s.guard.cookieFor("")
	same := map[string]string{"Cookie": cookie, "Origin": s.http.URL, "Sec-Fetch-Site": "same-origin"}
	stop := home + "thread/" + id + "/stop"
	for name, c := range map[string]struct {
		method, url string
		header      map[string]string
		body        string
		want        int
	}{
		"with the cookie":                 {"GET", home, map[string]string{"Cookie": cookie}, "", 200},
		"without it":                      {"GET", home, nil, "", 403},
		"a forged cookie":                 {"GET", home, map[string]string{"Cookie": cookieName + "=x"}, "", 403},
		"a forged key":                    {"GET", home + "?key=x", nil, "", 403},
		"no key":                          {"GET", home + "?key=", nil, "", 403},
		"no word":                         {"GET", s.http.URL + "/", map[string]string{"Cookie": cookie}, "", 404},
		"DNS rebinding":                   {"GET", home, map[string]string{"Cookie": cookie, "Host": "evil.example"}, "", 421},
		"another port":                    {"GET", home, map[string]string{"Cookie": cookie, "Host": "127.0.0.1:1"}, "", 421},
		"a style without the cookie":      {"GET", home + "style.css", nil, "", 403},
		"another site":                    {"GET", home, map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}, "", 403},
		"another port's page":             {"GET", home, map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-site"}, "", 403},
		"a script of another site":        {"GET", home, map[string]string{"Cookie": cookie, "Origin": "http://evil.example"}, "", 403},
		"within a frame":                  {"GET", home, map[string]string{"Cookie": cookie, "Sec-Fetch-Dest": "iframe"}, "", 403},
		"a person's own click":            {"GET", home, map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "none", "Sec-Fetch-Dest": "document"}, "", 200},
		"a post of another site":          {"POST", stop, map[string]string{"Cookie": cookie, "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}, "token=" + s.guard.form, 403},
		"a post of another port":          {"POST", stop, map[string]string{"Cookie": cookie, "Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}, "token=" + s.guard.form, 403},
		"a post of nowhere":               {"POST", stop, map[string]string{"Cookie": cookie}, "token=" + s.guard.form, 403},
		"a post of an opaque place":       {"POST", stop, map[string]string{"Cookie": cookie, "Origin": "null"}, "token=" + s.guard.form, 403},
		"a post without the form's token": {"POST", stop, same, "", 403},
		"a post without the cookie":       {"POST", stop, map[string]string{"Origin": s.http.URL}, "token=" + s.guard.form, 403},
		"no such verb":                    {"POST", home + "thread/" + id + "/rm", same, "token=" + s.guard.form, 404},
		"no such thread":                  {"POST", home + "thread/--all/stop", same, "token=" + s.guard.form, 404},
		"another method":                  {"DELETE", stop, same, "", 405},
		"a path out of here":              {"GET", home + "thread/..%2f..%2fx", map[string]string{"Cookie": cookie}, "", 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, strings.NewReader(c.body))
		require.NoError(t, err)
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		if host := r.Header.Get("Host"); host != "" {
			r.Host = host
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err, name)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, c.want, answer.StatusCode, name)
		for k, v := range headers() {
			require.Equal(t, v, answer.Header.Get(k), "%s: %s", name, k)
		}
	}
	require.Regexp(t, `frame-ancestors 'none'`, headers()["Content-Security-Policy"])
	require.NotContains(t, headers()["Content-Security-Policy"], "unsafe")
}

// The key works once; afterwards only the cookie does, which no script can read and which is sent by no other
// site and to no other path.
func TestCookie(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	s.guard.opened.Store(false) // by its browser
	r := httptest.NewRequest(http.MethodGet, s.guard.address(), nil)
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, r)
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, s.guard.base, w.Header().Get("Location"))
	c := w.Result().Cookies()[0]
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, s.guard.base, c.Path)

	for cookie, want := range map[string]int{"": http.StatusForbidden, c.Name + "=" + c.Value: http.StatusSeeOther} {
		again := httptest.NewRequest(http.MethodGet, s.guard.address(), nil)
		again.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		s.guard.ServeHTTP(w, again)
		require.Equal(t, want, w.Code, "only the browser that has opened it may do so again")
		require.Empty(t, w.Result().Cookies())
	}
}

// Hostile texts are shown on every page, and nothing in them is executed.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start(hostile)
	step := s.step(id, "more", hostile, hostile)
	other := s.start(hostile + strings.Repeat("w", 1<<20))
	s.step(other, "done", hostile, hostile)
	at, err := s.engine.Reader.Show(t.Context(), id)
	require.NoError(t, err)
	wf := at.Workflow
	pages := []string{
		"", "threads", "threads?q=script", "threads?q=" + url.QueryEscape(hostile), "stats?since=&by=model&by=agent", "workflows", "thread/" + id, "thread/" + other,
		"thread/" + id + "/step/" + string(step), "diff?a=" + id + "&b=" + other, "diff?a=" + url.QueryEscape(hostile),
		"workflow/" + string(wf),
	}
	tag := regexp.MustCompile(`<[a-z][^>]*>`)
	quoted := regexp.MustCompile(`"[^"]*"`)
	bad := regexp.MustCompile(`(?i)^<(script|img|svg|iframe|style|link|base|meta|object)\b|\son\w+\s*=|\sstyle\s*=`)
	leads := regexp.MustCompile(`(?i) (href|src|action)="\s*(javascript|data|http)`)
	ours := regexp.MustCompile(`^<(script src="/|link rel="(stylesheet|icon)" href="/|meta (charset|name="viewport")|svg class="(bar|time|columns|swatch)"|img src="/)`)
	for _, page := range pages {
		body := s.get(page, http.StatusOK)
		for _, found := range tag.FindAllString(body, -1) {
			require.False(t, bad.MatchString(quoted.ReplaceAllString(found, `""`)) && !ours.MatchString(found), "%s: %s", page, found)
			require.NotRegexp(t, leads, found, page)
		}
		require.NotContains(t, body, "\u202e", page)
		require.NotContains(t, body, "\x1b", page)
		require.Less(t, len(body), 1<<20, page)
	}
	file := s.get("thread/"+id+"/run.html", http.StatusOK)
	require.NotContains(t, file, "<script")
	require.Contains(t, file, "Content-Security-Policy")
	s.get("thread/"+strings.Repeat("0", len(id))+"/run.html", http.StatusNotFound)
	svg := s.get("thread/"+id+"/graph.svg", http.StatusOK)
	require.NotContains(t, svg, "<script")
	all := s.get("thread/"+id+"/step/"+string(step)+"/turn/1", http.StatusOK)
	require.Contains(t, all, "<script>alert(1)</script>", "plain text")
	require.NotContains(t, all, "\x1b")
}

// files returns the contents of a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			found[path] = info.Mode().String() + info.ModTime().String()
		}
		return err
	}))
	return found
}

// A step with snapshots lists its changed files.
func TestFilesOfAStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	s.files = &protocol.Files{Tree: "sha1:0123456789012345678901234567890123456789"}
	id := s.start("x")
	step := s.step(id, "more", "y")
	prosetest.Text(t, read(s.get("thread/"+id+"/step/"+string(step), http.StatusOK)))
}

// Without --actions nothing can be changed, and viewing leaves no trace.
func TestOnlyLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	id := s.start("look")
	step := s.step(id, "done", "x", "y")
	at, err := s.engine.Reader.Show(t.Context(), id)
	require.NoError(t, err)
	before := files(t, s.engine.Reader.Dirs.Home)
	for _, page := range []string{"", "threads", "stats", "stats.csv", "workflows", "workflow/" + string(at.Workflow), "thread/" + id, "thread/" + id + "/graph.svg", "thread/" + id + "/step/" + string(step)} {
		require.NotContains(t, s.get(page, http.StatusOK), `method="post"`, page)
	}
	for _, verb := range []string{"answer", "resume", "continue", "retry", "stop", "fork", "replay", "message", "undo", "redo", "apply", "seal"} {
		status, _ := s.post("thread/"+id+"/"+verb, url.Values{"step": {string(step)}, "head": {string(step)}})
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, status, verb)
	}
	_, err = s.server.engine.Start(t.Context(), protocol.Start{Workflow: "44P8EP6N3NXZ5", Prompt: "x", Cwd: s.dir}, engine.StartOptions{})
	require.ErrorContains(t, err, "read-only")
	require.Equal(t, before, files(t, s.engine.Reader.Dirs.Home))
}

// Long threads and lists are paged, and a long turn loses its middle.
func TestPaging(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	id := s.start("long")
	for range stepsAtOnce + 1 {
		s.step(id, "more", "x")
	}
	long := s.step(id, "more", "x", "begin"+strings.Repeat("word ", 2<<20)+"end")
	page := s.get("thread/"+id, http.StatusOK)
	require.Regexp(t, `<dt>Steps</dt>\s*<dd>102</dd>`, page)
	require.Contains(t, page, `id="s102"`)
	require.NotContains(t, page, `id="s2"`)
	earlier := regexp.MustCompile(`href="[^"]*(thread/[^"]*before=[^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, earlier)
	page = s.get(earlier[1], http.StatusOK)
	require.Contains(t, page, `id="s1"`)
	require.Contains(t, page, `id="s2"`)
	require.NotContains(t, page, `id="s3"`)
	page = s.get("thread/"+id+"/step/"+string(long), http.StatusOK)
	require.Less(t, len(page), 4*mostAlone)
	require.Contains(t, page, "bytes in the middle are left out")
	require.Greater(t, len(s.get("thread/"+id+"/step/"+string(long)+"/turn/1", http.StatusOK)), 10<<20)
	for range rows + 1 {
		s.start("one of many")
	}
	seen, at := 0, "threads?q=many"
	for pages := 0; at != ""; pages++ {
		require.Less(t, pages, 3)
		page := s.get(at, http.StatusOK)
		seen += strings.Count(page, `<th scope="row">`)
		at = ""
		if next := regexp.MustCompile(`href="[^"]*(threads\?[^"]*)" rel="next"`).FindStringSubmatch(page); next != nil {
			at = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	require.Equal(t, rows+1, seen)
	require.NotContains(t, s.get("threads?status=error", http.StatusOK), "<tbody>")
}

// A page is notified when another process changes something, with and without file notifications from the
// system.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	id := s.start("live")
	answer, err := s.client.Get(s.http.URL + s.guard.base + "events?thread=" + id)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	lines := bufio.NewScanner(answer.Body)
	wait := func(word string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), word) {
				return
			}
		}
		t.Fatal("the stream ended before ", word)
	}
	wait("data: begin")
	for range 2 {
		s.step(id, "more", "x")
		wait(`data: {"thread":"` + id + `","parts":["about",`)
	}
}
