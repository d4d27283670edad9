package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

const mib = 1 << 20

// An answer of 16 MiB is shown shortened, and one that a user sends is rejected without an effect.
func TestAnswersOf16MiB(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("x")
	long := strings.Repeat("A **long** word. ", 16*mib/17)
	first, step := s.step(id, "more", long), s.step(id, "done", "x", long)
	for _, page := range []string{"", "threads", "thread/" + id, "thread/" + id + "/step/" + string(first), "thread/" + id + "/step/" + string(step), "stats"} {
		require.Less(t, len(s.get(page, http.StatusOK)), mib, page)
	}
	head, err := s.engine.Reader.Head(t.Context(), id)
	require.NoError(t, err)
	status, _ := s.post("thread/"+id+"/answer", url.Values{"head": {string(head)}, "field.$status": {"yes"}, "field.<b>why</b>": {long}})
	require.GreaterOrEqual(t, status, 400)
	require.Equal(t, 2, s.steps(id))
}

// Two answers for the same head: one becomes a step, the other is rejected.
func TestTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("x")
	head := s.step(id, "done", "x")
	var wait sync.WaitGroup
	got := make(chan int, 2)
	for range 2 {
		wait.Go(func() {
			status, _ := s.post("thread/"+id+"/answer", url.Values{"head": {string(head)}, "field.$status": {"yes"}})
			got <- status
		})
	}
	wait.Wait()
	close(got)
	all := map[int]int{}
	for status := range got {
		all[status]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusUnprocessableEntity: 1}, all)
	require.Equal(t, protocol.StatusCompleted, s.waits(id).Status)
	require.Equal(t, 2, s.steps(id))
}

// remove deletes a thread from the home's list.
func (s *site) remove(id string) {
	s.Helper()
	path := filepath.Join(s.engine.Reader.Dirs.Home, "threads.yaml")
	data, err := os.ReadFile(path)
	require.NoError(s, err)
	var kept []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, id) {
			kept = append(kept, line)
		}
	}
	require.NoError(s, os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600))
}

// The page of a thread that is removed while it is open reports this, and so do its actions.
func TestRemovedWhileOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id, other := s.start("x"), s.start("y")
	head := s.step(id, "done", "x")
	events, err := s.client.Get(s.http.URL + s.guard.base + "events?thread=" + id)
	require.NoError(t, err)
	defer events.Body.Close()
	s.remove(id)
	for _, page := range []string{"", "?part=about,flight,steps&after=" + string(head), "/graph.svg", "/run.html"} {
		s.get("thread/"+id+page, http.StatusNotFound)
	}
	for _, verb := range []string{"answer", "resume", "continue", "retry", "undo", "redo", "seal", "stop", "message", "apply"} {
		status, body := s.post("thread/"+id+"/"+verb, url.Values{"head": {string(head)}, "field.$status": {"yes"}, "text": {"x"}})
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, status, "%s: %s", verb, body)
	}
	require.NotContains(t, s.get("", http.StatusOK), id)
	require.Contains(t, s.get("threads", http.StatusOK), other)
	s.get("diff?a="+id+"&b="+other, http.StatusNotFound)
}

// A step with 10,000 children is a page of bounded size.
func TestTenThousandChildren(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("x")
	head := s.step(id, "more", "x")
	step, err := cas.Read[protocol.Step](t.Context(), s.engine.Reader.Store, head)
	require.NoError(t, err)
	for i := range 10_000 {
		status := protocol.StatusCompleted
		if i%9 == 0 {
			status = protocol.StatusFailed
		}
		step.Children = append(step.Children, protocol.ChildEnded{Key: fmt.Sprintf("<b>%d", i), Head: head, Status: status})
	}
	made, err := thread.Open(t.Context(), s.engine.Reader.Store, head)
	require.NoError(t, err)
	step.Prev, step.Index, step.Visits = &head, made.Len(), map[string]int{"writer": made.Len() + 1}
	b := cas.NewBatch(s.engine.Reader.Store, time.Now)
	last, err := b.Add(t.Context(), step)
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context()))
	require.NoError(t, s.engine.Reader.Heads.Move(t.Context(), id, head, last))
	for _, page := range []string{"", "threads", "thread/" + id, "thread/" + id + "/step/" + string(last)} {
		began := time.Now()
		body := s.get(page, http.StatusOK)
		t.Logf("%-40.40s %4d kB in %v", page, len(body)>>10, time.Since(began).Round(time.Millisecond))
		require.Less(t, len(body), 2*mib, page)
		require.NotContains(t, body, "<b>0")
	}
}

// Forms that start a run are refused unless a page of this server sent them, and their values are data.
func TestHostileStarts(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()
	flow := strings.NewReplacer("name: loop", "name: evil").Replace(loop)
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, ".workflow"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".workflow", "evil.yaml"), []byte(flow), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "outside.yaml"), []byte(strings.Replace(flow, "name: evil", "name: outside", 1)), 0o600))
	whole := func() url.Values {
		return url.Values{"workflow": {"evil"}, "do": {"start"}, "task": {hostile}, "workspace": {"none"}}
	}
	send := func(header map[string]string, form url.Values, query string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+s.guard.base+"start"+query, strings.NewReader(form.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range header {
			r.Header.Set(name, value)
		}
		answer, err := s.client.Do(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	with := func(name string, values ...string) url.Values {
		form := whole()
		form.Set("token", s.guard.form)
		form[name] = values
		return form
	}
	before := 0
	ours := map[string]string{"Origin": s.http.URL}
	for name, c := range map[string]struct {
		header map[string]string
		form   url.Values
		query  string
	}{
		"no token":               {ours, whole(), ""},
		"the token of another":   {ours, with("token", strings.Repeat("A", 32)), ""},
		"the token in the URL":   {ours, whole(), "?token=" + s.guard.form},
		"no origin":              {nil, with("do", "start"), ""},
		"another origin":         {map[string]string{"Origin": "http://evil.example"}, with("do", "start"), ""},
		"an opaque origin":       {map[string]string{"Origin": "null"}, with("do", "start"), ""},
		"a file":                 {ours, with("workflow", "outside.yaml"), ""},
		"a path":                 {ours, with("workflow", "./outside.yaml"), ""},
		"up and out":             {ours, with("workflow", "../../../../etc/passwd"), ""},
		"a repository":           {ours, with("workflow", "https://evil.example/x.git//evil.yaml"), ""},
		"a flag":                 {ours, with("workflow", "--home=/tmp"), ""},
		"a program as agent":     {ours, with("agent.writer", "/bin/sh -c id"), ""},
		"an agent that is none":  {ours, with("agent.writer", "fake\n"), ""},
		"a mode that is a path":  {ours, with("workspace", "../.."), ""},
		"a cost of NaN":          {ours, with("max-cost", "NaN"), ""},
		"an infinite cost":       {ours, with("max-cost", "Inf"), ""},
		"too much cost":          {ours, with("max-cost", "1e308"), ""},
		"too many tokens":        {ours, with("max-tokens", "9223372036854775808"), ""},
		"a time of nothing":      {ours, with("max-time", "1ns"), ""},
		"a negative time":        {ours, with("max-time", "-2h"), ""},
		"a task that is no text": {ours, with("task", "\xff\xfe"), ""},
		"a task of 16 MiB":       {ours, with("task", strings.Repeat("x", 16*mib)), ""},
	} {
		status := send(c.header, c.form, c.query)
		all, err := threads(s)
		require.NoError(t, err)
		if status < 400 || status >= 500 || len(all) != before {
			t.Errorf("%s: status %d, %d new threads", name, status, len(all)-before)
		}
		before = len(all)
	}
	require.Equal(t, http.StatusOK, send(map[string]string{"Origin": s.http.URL}, with("do", "plan"), ""))
	s.get("start?"+whole().Encode(), http.StatusOK) // a link fills in nothing and starts nothing
	require.NotContains(t, s.get("start?"+whole().Encode(), http.StatusOK), "alert(3)")
	all, err := threads(s)
	require.NoError(t, err)
	require.Len(t, all, before)
}
