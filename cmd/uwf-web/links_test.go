//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/answerlink"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

const public = "https://uwf.example.org"

// linked is a site that accepts answer links, with a thread that asks a person.
func linked(t *testing.T, acts bool) (s *site, id string) {
	t.Helper()
	s = newSite(t, acts)
	s.server.takeLinks(s.guard)
	require.NoError(t, os.WriteFile(s.engine.Reader.Dirs.Config(), []byte("notify: { links: { address: '"+public+"' } }\n"), 0o600))
	id = s.start("x" + hostile)
	s.step(id, "done", "y")
	return s, id
}

func (s *site) word(id string, ends time.Duration) string {
	s.Helper()
	head, err := s.engine.Reader.Heads.Head(s.Context(), id)
	require.NoError(s, err)
	word, err := answerlink.Links{Dir: s.engine.Reader.Dirs.Notify()}.New(s.Context(), s.engine.Reader.Env.Rand, id, head, time.Now().Add(ends))
	require.NoError(s, err)
	return word
}

// link sends a request without cookies.
func (s *site) link(method, word string, form url.Values, header map[string]string) (status int, body string) {
	r := httptest.NewRequest(method, "http://uwf.example.org"+answerPath+word, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", public)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, r)
	for k, v := range headers() {
		require.Equal(s, v, w.Header().Get(k), k)
	}
	return w.Code, w.Body.String()
}

// A link answers the question once. Neither viewing it nor a rejected answer uses it up.
func TestALinkAnswersOnce(t *testing.T) {
	t.Parallel()
	s, id := linked(t, true)
	word := s.word(id, time.Hour)
	form := url.Values{"field.$status": {"yes"}, "name": {"Ann\u202e\n--home"}}
	for range 2 {
		status, page := s.link(http.MethodGet, word, nil, nil)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, page, `name="field.$status"`)
		require.NotContains(t, page, "<script")
		require.NotContains(t, page, s.guard.base, "it leads nowhere else")
		require.NotContains(t, page, s.guard.form)
	}
	status, page := s.link(http.MethodPost, word, url.Values{"field.$status": {"perhaps"}}, nil)
	require.Equal(t, http.StatusUnprocessableEntity, status, page)
	require.Equal(t, 1, strings.Count(page, "does not match"), page)
	require.NotContains(t, page, "uwf thread", "who has a link may have no uwf")
	require.NotContains(t, page, "{")

	status, page = s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusOK, status, page)
	at, err := s.engine.Reader.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCompleted, at.Status)
	made, err := cas.Read[protocol.Step](t.Context(), s.engine.Reader.Store, at.Head)
	require.NoError(t, err)
	detail, err := cas.Read[protocol.Detail](t.Context(), s.engine.Reader.Store, made.Detail)
	require.NoError(t, err)
	require.Equal(t, "Ann  --home (by link)", detail.By)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		status, page := s.link(method, word, form, nil)
		require.Equal(t, http.StatusGone, status)
		require.Contains(t, page, "was already used")
	}
}

// Forged and expired links, links to old questions, and requests from other sites are rejected, and nothing
// is started. The public address serves nothing else.
func TestLinksThatDoNotCount(t *testing.T) {
	t.Parallel()
	s, id := linked(t, true)
	word := s.word(id, time.Hour)
	form := url.Values{"field.$status": {"yes"}}
	head, err := s.engine.Reader.Head(t.Context(), id)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		word   string
		header map[string]string
		want   int
	}{
		"forged":             {word[:len(word)-2] + "xx", nil, http.StatusForbidden},
		"nothing":            {"x", nil, http.StatusForbidden},
		"late":               {s.word(id, -time.Second), nil, http.StatusGone},
		"another site":       {word, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		"an opaque place":    {word, map[string]string{"Origin": "null"}, http.StatusForbidden},
		"no place":           {word, map[string]string{"Origin": ""}, http.StatusForbidden},
		"DNS rebinding":      {word, map[string]string{"Host": "evil.example"}, http.StatusMisdirectedRequest},
		"within a frame":     {word, map[string]string{"Sec-Fetch-Dest": "iframe"}, http.StatusForbidden},
		"a longer way there": {"x/" + word, nil, http.StatusNotFound},
	} {
		status, _ := s.link(http.MethodPost, c.word, form, c.header)
		require.Equal(t, c.want, status, name)
	}
	after, err := s.engine.Reader.Head(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, head, after)
	r := httptest.NewRequest(http.MethodGet, "http://uwf.example.org"+s.guard.base, nil)
	r.Header.Set("Cookie", cookieName+"="+s.guard.cookieFor(""))
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, r)
	require.Equal(t, http.StatusMisdirectedRequest, w.Code)

	s.step(id, "more", "z") // it has moved ahead
	status, page := s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusGone, status)
	prosetest.Text(t, read(page))

	s, id = linked(t, false) // without --actions
	status, _ = s.link(http.MethodPost, s.word(id, time.Hour), form, map[string]string{"Host": s.http.Listener.Addr().String()})
	require.Equal(t, http.StatusNotFound, status)
}

// An idle thread gets no messages; it can be continued. The engine's error appears on the page once.
func TestAThreadThatIsIdle(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("x")
	s.step(id, "more", "x")
	page := s.get("thread/"+id, http.StatusOK)
	require.Contains(t, page, "<button>Continue</button>")
	require.NotContains(t, page, "<button>Message</button>")

	status, page := s.post("thread/"+id+"/continue", url.Values{})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Equal(t, 1, strings.Count(page, "no agent"), page)
	require.NotContains(t, page, "error&#34;")
}

// Links follow the current config: without an address in it, none is valid.
func TestLinksFollowTheConfig(t *testing.T) {
	t.Parallel()
	s, id := linked(t, true)
	word, own := s.word(id, time.Hour), map[string]string{"Host": s.http.Listener.Addr().String()}
	status, _ := s.link(http.MethodGet, word, nil, own)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, os.Remove(s.engine.Reader.Dirs.Config()))
	status, _ = s.link(http.MethodGet, word, nil, own)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.link(http.MethodGet, word, nil, nil)
	require.Equal(t, http.StatusMisdirectedRequest, status)
}
