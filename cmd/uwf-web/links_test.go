//go:build unix

package main

import (
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
if [ -e "$0.refuse" ]; then echo "uwf: it does not fit" >&2; exit 4; fi
echo '{"thread":"x"}'
`), 0o700))
	return path
}

// linked is a site that takes answer links, with a thread that asks a person.
func linked(t *testing.T, uwf string) (s *site, id string) {
	t.Helper()
	s = newSite(t, uwf)
	require.NoError(t, os.WriteFile(s.engine.Dirs.Config(), []byte("notify: { links: { address: '"+public+"' } }\n"), 0o600))
	require.NoError(t, s.server.takeLinks(t.Context(), s.guard))
	id = s.start("x" + hostile)
	s.step(id, "done", "y")
	return s, id
}

func (s *site) word(id string, ends time.Duration) string {
	s.Helper()
	head, err := s.engine.Heads.Head(s.Context(), id)
	require.NoError(s, err)
	word, err := answerlink.Links{Dir: s.engine.Dirs.Notify()}.New(s.Context(), s.engine.Env.Rand, id, head, time.Now().Add(ends))
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
		require.NotContains(t, page, s.guard.token)
	}
	require.NoError(t, os.WriteFile(uwf+".refuse", nil, 0o600))
	status, page := s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "it does not fit")
	require.NoError(t, os.Remove(uwf+".refuse"))

	status, page = s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusOK, status, page)
	args, err := os.ReadFile(uwf + ".args")
	require.NoError(t, err)
	require.Contains(t, string(args), "thread answer "+id+" --at ")
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
	r.Header.Set("Cookie", cookieName+"="+s.guard.key)
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, r)
	require.Equal(t, http.StatusMisdirectedRequest, w.Code)

	s.step(id, "more", "z") // it has gone on
	status, page := s.link(http.MethodPost, word, form, nil)
	require.Equal(t, http.StatusGone, status)
	require.Contains(t, page, "in another way")

	s, id = linked(t, "") // without --actions
	status, _ = s.link(http.MethodPost, s.word(id, time.Hour), form, map[string]string{"Host": s.http.Listener.Addr().String()})
	require.Equal(t, http.StatusNotFound, status)
}
