//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/answerlink"
	"github.com/united-workforce/uwf/util/prosetest"
)

const public = "https://uwf.example.org"

// fakeUwf is a program that notes how it is started and what it reads, and fails while
// there is a file beside it.
func fakeUwf(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "uwf")
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(`#!/bin/sh
echo "$@" >> "$0.args"
cat >> "$0.stdin"
if [ -e "$0.refuse" ]; then printf '%s\n' 'uwf: it does not fit' 'hint: uwf thread show x' '{"error":{"code":"invalid","message":"it does not fit","hint":"uwf thread show x"}}' >&2; exit 4; fi
echo '{"thread":"x"}'
`), 0o700))
	return path
}

// linked is a site that takes answer links, with a thread that asks a person.
func linked(t *testing.T, uwf string) (s *site, id string) {
	t.Helper()
	s = newSite(t, uwf)
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

// link sends a request without any cookie.
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

// A link answers the question once; looking at it uses nothing up, nor does an answer that
// uwf refuses.
func TestALinkAnswersOnce(t *testing.T) {
	t.Parallel()
	uwf := fakeUwf(t)
	s, id := linked(t, uwf)
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
	require.NoError(t, os.WriteFile(uwf+".refuse", nil, 0o600))
	status, page := s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Equal(t, 1, strings.Count(page, "it does not fit"), page)
	require.NotContains(t, page, "uwf thread", "who has a link may have no uwf")
	require.NotContains(t, page, "{")
	require.NoError(t, os.Remove(uwf+".refuse"))

	status, page = s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusOK, status, page)
	args, err := os.ReadFile(uwf + ".args")
	require.NoError(t, err)
	require.Contains(t, string(args), "thread answer "+id+" --if-head ")
	require.Contains(t, string(args), " (by link) --file - --until-end --background")
	require.NotContains(t, string(args), word)
	stdin, err := os.ReadFile(uwf + ".stdin")
	require.NoError(t, err)
	require.Contains(t, string(stdin), `{"$status":"yes"}`)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		status, page := s.link(method, word, form, nil)
		require.Equal(t, http.StatusGone, status)
		require.Contains(t, page, "was used")
	}
}

// Forged and late links, those of a question that is asked no more, and what other sites
// send, are refused, and nothing is started. Under the public name there is nothing else.
func TestLinksThatDoNotCount(t *testing.T) {
	t.Parallel()
	uwf := fakeUwf(t)
	s, id := linked(t, uwf)
	word := s.word(id, time.Hour)
	form := url.Values{"field.$status": {"yes"}}
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
	_, err := os.Stat(uwf + ".args")
	require.ErrorIs(t, err, os.ErrNotExist)
	r := httptest.NewRequest(http.MethodGet, "http://uwf.example.org"+s.guard.base, nil)
	r.Header.Set("Cookie", cookieName+"="+s.guard.secret)
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, r)
	require.Equal(t, http.StatusMisdirectedRequest, w.Code)

	s.step(id, "more", "z") // it has gone on
	status, page := s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusGone, status)
	prosetest.Text(t, read(page))

	s, id = linked(t, "") // without --actions
	status, _ = s.link(http.MethodPost, s.word(id, time.Hour), form, map[string]string{"Host": s.http.Listener.Addr().String()})
	require.Equal(t, http.StatusNotFound, status)
}

// A thread at which nothing works is told nothing: it is gone on with. Why uwf has refused
// stands on the page once, with its hint.
func TestAThreadThatIsIdle(t *testing.T) {
	t.Parallel()
	uwf := fakeUwf(t)
	s := newSite(t, uwf)
	id := s.start("x")
	s.step(id, "more", "x")
	page := s.get("thread/"+id, http.StatusOK)
	require.Contains(t, page, "<button>Continue</button>")
	require.NotContains(t, page, "<button>Tell</button>")

	require.NoError(t, os.WriteFile(uwf+".refuse", nil, 0o600))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+s.guard.base+"thread/"+id+"/continue", strings.NewReader(url.Values{"token": {s.guard.form}}.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.http.URL)
	answer, err := s.client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode)
	require.Equal(t, 1, strings.Count(string(body), "it does not fit"))
	require.Contains(t, string(body), "<code>uwf thread show x</code>")
	require.NotContains(t, string(body), "error&#34;")
}

// Links count as the config says when they are opened: without an address they do not.
func TestLinksFollowTheConfig(t *testing.T) {
	t.Parallel()
	s, id := linked(t, fakeUwf(t))
	word, own := s.word(id, time.Hour), map[string]string{"Host": s.http.Listener.Addr().String()}
	status, _ := s.link(http.MethodGet, word, nil, own)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, os.Remove(s.engine.Reader.Dirs.Config()))
	status, _ = s.link(http.MethodGet, word, nil, own)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.link(http.MethodGet, word, nil, nil)
	require.Equal(t, http.StatusMisdirectedRequest, status)
}
