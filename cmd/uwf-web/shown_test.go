package main

import (
	"encoding/json"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// flip damages the file of a node.
func (s *site) flip(h protocol.Hash) {
	s.Helper()
	castest.FindRecord(s, s.engine.Reader.Store.(*fsstore.Store).Dir(), h).Flip()
}

// says loads a page whose text must contain these words.
func (s *site) says(path string, status int, words ...string) {
	s.Helper()
	page := read(s.get(path, status))
	for _, w := range words {
		require.Contains(s, page, w, path)
	}
}

// read returns the text of a page.
func read(page string) string {
	page = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>`).ReplaceAllString(page, "")
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, ""))
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Damaged and redacted nodes, and those of a newer uwf, are reported on every page as on the command line,
// and hide nothing else.
func TestDamagedRedactedNewer(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	ctx := t.Context()
	damaged, redacted, whole := s.start("damaged"), s.start("redacted"), s.start("whole")
	first := s.step(damaged, "more", "one", "a turn")
	second := s.step(damaged, "more", "two", "another")
	said := s.step(redacted, "more", "one", "a secret", "the rest")
	s.step(whole, "more", "one")

	opened, err := thread.Open(ctx, s.engine.Reader.Store, said)
	require.NoError(t, err)
	detail, err := thread.ShownDetail(ctx, s.engine.Reader.Store, opened.Last.Detail)
	require.NoError(t, err)
	_, err = redact.Node(ctx, s.engine.Reader.Store.(*fsstore.Store), s.engine.Reader.Heads.(*fileheads.Heads), redacted, detail.Turns[1], redact.Options{Reason: "a password", Now: time.Now})
	require.NoError(t, err)
	s.says("thread/"+redacted, http.StatusOK, "redacted: a password")
	s.says("thread/"+redacted+"/step/"+string(said), http.StatusOK, "redacted: a password", "a secret")
	s.says("thread/"+redacted+"/step/"+string(said)+"/turn/2", http.StatusOK, "redacted: a password")

	at, err := thread.Open(ctx, s.engine.Reader.Store, second)
	require.NoError(t, err)
	s.flip(at.Last.Output)
	_, wrong := at.Output(ctx, *at.Last)
	require.Error(t, wrong)
	s.says("thread/"+damaged, http.StatusOK, "corrupt", wrong.Error(), "uwf thread diagnose "+damaged)
	s.says("thread/"+damaged+"/step/"+string(second), http.StatusOK, wrong.Error())
	s.says("thread/"+damaged+"/step/"+string(first), http.StatusOK, "one")
	s.says("", http.StatusOK, "damaged", "corrupt", "uwf thread diagnose "+damaged)
	s.says("threads", http.StatusOK, "damaged", "corrupt", "whole", "redacted")
	s.flip(first)
	s.says("thread/"+damaged, http.StatusOK, "corrupt", string(first))
	s.says("stats?since=", http.StatusOK, "1 threads cannot be read", "Steps of 3 threads")
	s.says("diff?a="+damaged+"&b="+whole, http.StatusInternalServerError, string(first))
	s.flip(second)
	_, wrong = thread.Open(ctx, s.engine.Reader.Store, second)
	s.says("thread/"+damaged, http.StatusOK, "corrupt", wrong.Error())
	s.says("thread/"+damaged+"/step/"+string(second), http.StatusInternalServerError, wrong.Error())
	s.says("thread/"+whole, http.StatusOK, "one")

	newer := s.newer()
	_, wrong = s.engine.Reader.Show(ctx, newer)
	require.ErrorIs(t, wrong, &protocol.Error{Code: protocol.CodeUnsupportedVersion})
	s.says("thread/"+newer, http.StatusInternalServerError, wrong.Error())
	s.says("threads", http.StatusOK, "new", "whole")
	flow, err := s.engine.Reader.Head(ctx, newer)
	require.NoError(t, err)
	start, err := thread.Open(ctx, s.engine.Reader.Store, flow)
	require.NoError(t, err)
	s.says("workflow/"+string(start.Start.Workflow), http.StatusInternalServerError, "made by a newer uwf")
	s.says("workflows", http.StatusOK, "made by a newer uwf", "loop")
	s.says("", http.StatusOK, damaged)
}

// newer is a thread of a workflow written by a newer uwf.
func (s *site) newer() string {
	s.Helper()
	ctx, store := s.Context(), s.engine.Reader.Store
	put := func(typ protocol.Hash, value any) protocol.Hash {
		payload, err := cas.Encode(value)
		require.NoError(s, err)
		n := cas.Node{Type: typ, Payload: payload, Hash: store.Algorithm().Sum(typ, payload), Timestamp: 1}
		require.NoError(s, store.Put(ctx, n))
		return n.Hash
	}
	var schema map[string]any
	require.NoError(s, json.Unmarshal([]byte(protocol.SchemaJSON(protocol.Type{Kind: protocol.KindWorkflow, Version: protocol.KindWorkflow.Versions()})), &schema))
	schema["title"] = protocol.Type{Kind: protocol.KindWorkflow, Version: 9}.Title()
	old, err := s.engine.Reader.Show(ctx, s.start("of an older one"))
	require.NoError(s, err)
	w, err := cas.Read[protocol.Workflow](ctx, store, old.Workflow)
	require.NoError(s, err)
	b := cas.NewBatch(store, s.engine.Reader.Env.Now)
	start, err := b.Add(ctx, protocol.Start{Workflow: put(put(store.Kinds().MetaHash(), schema), w), Prompt: "new", Cwd: s.dir})
	require.NoError(s, err)
	require.NoError(s, b.Commit(ctx))
	const id = "01M84M2320ME0VFYK41B5DJRFT"
	require.NoError(s, s.engine.Reader.Heads.AddAll(ctx, []heads.New{{Head: heads.Head{Thread: id, Hash: start}}}))
	return id
}

// A workflow is shown by its file in the project, its name or its hash; no other file on this machine is.
func TestWorkflowPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	id := s.start("a run of it")
	at, err := s.engine.Reader.Show(t.Context(), id)
	require.NoError(t, err)
	s.says("workflows", http.StatusOK, "loop", string(at.Workflow))
	s.says("workflow/"+string(at.Workflow), http.StatusOK, "loop", "writer", "a person", "cannot run", "uwf setup", "a run of it")
	require.Contains(t, s.get("workflow/"+string(at.Workflow)+"/graph.svg", http.StatusOK), "<svg")
	require.Contains(t, s.get("thread/"+id, http.StatusOK), "workflow/"+string(at.Workflow))

	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, ".workflows"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".workflows", "mine.yaml"), []byte(strings.Replace(loop, "name: loop", "name: mine", 1)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".workflows", "broken.yaml"), []byte("name: broken\nroles: 7\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.engine.Reader.Dirs.Home, "config.yaml"), []byte("agents: {one: {command: uwf-none}, two: {command: uwf-none}}\ndefaultAgent: one\nagentOverrides: {mine: {writer: two}}\n"), 0o600))
	s.says("workflows", http.StatusOK, "mine", ".workflows/mine.yaml", "broken.yaml")
	s.says("workflow/mine", http.StatusOK, "writer", "an agent: two", "agentOverrides.mine.writer", "There are none.")
	s.says("workflow/broken", http.StatusInternalServerError, "roles")
	for _, path := range []string{"nobody", "..%2f..%2floop.yaml", "loop.yaml", "%2fetc%2fpasswd", "44P8EP6N3NXZ5"} {
		s.says("workflow/"+path, http.StatusNotFound)
	}
}

// The page of costs, its CSV file and the command line agree.
func TestCosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, false)
	id := s.start("x")
	s.step(id, "more", "=evil", "one", "two")
	s.step(id, "more", "fine")
	page := s.get("stats?since=&by=model&by=agent", http.StatusOK)
	require.Contains(t, page, `class="columns"`)
	require.Contains(t, page, "uwf stats --by model,agent<")
	link := regexp.MustCompile(`href="[^"]*(stats\.csv[^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, link)
	require.Equal(t, "model,agent,steps,durationMs,tokensIn,tokensOut,stepsWithoutUsage,costUsd,stepsWithoutCost\n'=evil,'=evil,1,2000,,,1,,1\nfine,fine,1,2000,,,1,,1\n",
		s.get(html.UnescapeString(link[1]), http.StatusOK))
	require.Contains(t, s.get("stats", http.StatusOK), "--since 30d", "without a word, it is the last month")
	s.says("stats?since=nonsense&by=nothing", http.StatusOK, "uwf stats --by workflow", "all")
}
