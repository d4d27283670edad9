package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

const asking = `name: asking
description: Asks a question after each step.
roles:
  writer:
    description: Writes.
    goal: Write.
    frontmatter: {type: object, properties: {$status: {enum: [more, done]}, text: {type: string}}, required: [$status]}
graph: { $START: writer, writer: { more: $END, done: { role: $SUSPEND, prompt: "Which one?" } } }
`

// A text that answers an earlier question, or an action on an earlier step, is rejected.
func TestActionsOnAnEarlierPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	id, at := s.run("asking.yaml", asking, engine.StartOptions{})
	require.NotNil(t, at.Question)
	page := s.get("thread/"+id, http.StatusOK)
	require.Equal(t, 3, strings.Count(page, `name="head" value="`+string(at.Head)+`"`), "the answer, retry and undo")
	seen := func() url.Values { return url.Values{"head": {string(at.Head)}, "text": {"the first"}} }
	status, page := s.post("thread/"+id+"/resume", seen())
	require.Equal(t, http.StatusOK, status, page)
	next := s.waits(id)
	require.Equal(t, 2, s.steps(id))
	for _, verb := range []string{"resume", "retry", "undo"} {
		status, page := s.post("thread/"+id+"/"+verb, seen())
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", verb, page)
		require.Equal(t, next.Head, s.waits(id).Head, verb)
	}
	status, page = s.post("thread/"+id+"/undo", url.Values{"head": {string(next.Head)}})
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, at.Head, s.waits(id).Head)
	status, _ = s.post("thread/"+id+"/redo", url.Values{"head": {string(next.Head)}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	status, page = s.post("thread/"+id+"/redo", seen())
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, next.Head, s.waits(id).Head)
}

const twoAsk = `name: two-ask
description: Two questions.
roles:
  judge: { description: Decides, person: true, answer: { $status: [yes, no] } }
  both: { all: { a: { role: judge, prompt: "Is a right?" }, b: { role: judge, prompt: "Is b right?" } } }
graph: { $START: both, both: $END }
`

// A parent passes an answer to the child whose question the page has shown, and to no other.
func TestAnAnswerForAnotherChild(t *testing.T) {
	t.Parallel()
	s, _ := linked(t, true)
	id, at := s.run("two-ask.yaml", twoAsk, engine.StartOptions{})
	require.NotNil(t, at.Question)
	hidden := func(page string) url.Values {
		t.Helper()
		form := url.Values{"field.$status": {"yes"}}
		for _, name := range []string{"head", "asks"} {
			if found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page); found != nil {
				form.Set(name, found[1])
			}
		}
		return form
	}
	word := s.word(id, time.Hour)
	_, linkPage := s.link(http.MethodGet, word, nil, nil)
	require.Contains(t, linkPage, "Is a right?")
	first := s.get("thread/"+id, http.StatusOK)
	require.Contains(t, first, "Is a right?")
	status, page := s.post("thread/"+id+"/answer", hidden(first))
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, "Is b right?", s.waits(id).Question.Text)
	require.Equal(t, at.Head, s.waits(id).Head)

	status, page = s.post("thread/"+id+"/answer", hidden(first))
	require.Equal(t, http.StatusUnprocessableEntity, status, page)
	status, page = s.link(http.MethodPost, word, hidden(linkPage), nil)
	require.Equal(t, http.StatusGone, status, page)
	require.Equal(t, "Is b right?", s.waits(id).Question.Text)
	status, page = s.post("thread/"+id+"/answer", hidden(s.get("thread/"+id, http.StatusOK)))
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, protocol.StatusCompleted, s.waits(id).Status)
}

// A form that does not arrive completely does not use a link up.
func TestAnIncompleteAnswerToALink(t *testing.T) {
	t.Parallel()
	s, _ := linked(t, true)
	s.plays()()
	config, err := os.OpenFile(s.engine.Reader.Dirs.Config(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = config.WriteString("notify: { links: { address: '" + public + "' } }\n")
	require.NoError(t, err)
	require.NoError(t, config.Close())
	id, at := s.run("asking.yaml", asking, engine.StartOptions{})
	require.NotNil(t, at.Question)
	word := s.word(id, time.Hour)
	status, page := s.link(http.MethodPost, word, url.Values{"text": {strings.Repeat("x", 2*mib)}}, nil)
	require.Equal(t, http.StatusBadRequest, status, page)
	cut := httptest.NewRequest(http.MethodPost, "http://uwf.example.org"+answerPath+word, io.MultiReader(strings.NewReader("text=the+fir"), broken{}))
	cut.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	cut.Header.Set("Origin", public)
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, cut)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, at.Head, s.waits(id).Head)
	status, page = s.link(http.MethodPost, word, url.Values{"text": {"the first"}}, nil)
	require.Equal(t, http.StatusOK, status, page)
	require.NotEqual(t, at.Head, s.waits(id).Head)
}

// broken is a connection that is lost.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A confirmed action is sent again with all of its values.
func TestConfirmedActionsKeepTheirValues(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.PostForm = url.Values{"token": {"x"}, "key": {"one", "two"}}
	w := httptest.NewRecorder()
	require.NoError(t, s.server.done(w, r, &engine.UntrustedError{Workflow: "44P8EP6N3NXZ5"}, "back", "again"))
	for _, key := range []string{"one", "two"} {
		require.Contains(t, w.Body.String(), `name="key" value="`+key+`"`)
	}
}
