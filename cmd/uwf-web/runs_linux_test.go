package main

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
)

// run starts a thread of a workflow and runs it from its page until it stops.
func (s *site) run(name, text string, o engine.StartOptions) (id string, at protocol.StepOutput) {
	s.Helper()
	id = s.begin(name, text, o)
	return id, s.waits(id)
}

// begin starts a thread of a workflow and runs it in the background.
func (s *site) begin(name, text string, o engine.StartOptions) (id string) {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	h, err := catalog.Of(s.engine).Find(s.Context(), name)
	require.NoError(s, err)
	id, err = s.engine.Start(s.Context(), protocol.Start{Workflow: h, Prompt: "it", Cwd: s.dir}, o)
	require.NoError(s, err)
	status, page := s.post("thread/"+id+"/continue", nil)
	require.Equal(s, http.StatusOK, status, page)
	return id
}

const mixed = `name: mixed
description: Asks while it works.
roles:
  judge: { description: Decides, person: true, answer: { $status: [yes, no] } }
  writer: { description: Writes, goal: Write. }
  both: { all: { asks: { role: judge, prompt: "Is it right?" }, works: { role: writer, prompt: "Work." } } }
graph: { $START: both, both: $END }
`

// The question of a child is in the inbox, even if other threads fill the list of those at work.
func TestQuestionsOfChildren(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	open := s.plays()
	asks := s.begin("mixed.yaml", mixed, engine.StartOptions{})
	newer := s.begin("loop.yaml", loop, engine.StartOptions{})
	require.Eventually(t, func() bool {
		waiting, running, more, moreRunning := view.Attention(t.Context(), s.server.engine, &view.Summaries{}, 1, func(err error) { t.Error(err) })
		return len(waiting) == 1 && strings.Contains(waiting[0].Command, asks+"/") && more == 0 &&
			len(running) == 2 && running[0].Thread == newer && moreRunning == 0
	}, 20*time.Second, 50*time.Millisecond)
	require.Contains(t, s.get("", http.StatusOK), "Is it right?")
	open()
	s.waits(newer)
	require.Equal(t, protocol.StatusSuspended, s.waits(asks).Status)
}

const checkOne = `name: check-one
description: Checks one.
roles: { check: { description: Checks, run: [sh, -c, 'case "$1" in "$(cat good)"*) exit 0;; esac; exit 127', check, "{{$prompt}}"] } }
graph: { $START: check, check: $END }
`

const checkAll = `name: check-all
description: Checks each.
roles: { all: { each: { of: "['a1', 'b1', 'b2', 'c1']", workflow: ./check-one.yaml, prompt: "{{item}}" } } }
graph: { $START: all, all: $END }
`

// Selected children are run again, even if another one cannot be.
func TestRetrySelectedChildren(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "check-one.yaml"), []byte(checkOne), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "good"), []byte("a"), 0o600))
	id, at := s.run("check-all.yaml", checkAll, engine.StartOptions{})
	require.NotEqual(t, protocol.StatusCompleted, at.Status)
	keys := func() (keys []string) {
		for _, found := range regexp.MustCompile(`name="key" value="([^"]*)"`).FindAllStringSubmatch(s.get("thread/"+id, http.StatusOK), -1) {
			keys = append(keys, found[1])
		}
		return keys
	}
	failed := keys()
	require.Len(t, failed, 3)
	status, _ := s.post("thread/"+id+"/retry-children", nil)
	require.Equal(t, http.StatusUnprocessableEntity, status, "nothing is selected")
	require.Equal(t, failed, keys())

	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "good"), []byte("b"), 0o600))
	var some []string
	for _, c := range at.Children {
		if strings.HasPrefix(c.Label, "b") {
			some = append(some, c.Key)
		}
	}
	require.Len(t, some, 2)
	status, page := s.post("thread/"+id+"/retry-children", url.Values{"key": {some[0], "nobody", some[1]}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "nobody: ")
	s.waits(id)
	require.Len(t, keys(), 1, "the others were run again")
	require.NotContains(t, some, keys()[0])

	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "good"), []byte("c"), 0o600))
	status, page = s.post("thread/"+id+"/retry-children", url.Values{"key": keys()})
	require.Equal(t, http.StatusOK, status, page)
	require.Equal(t, protocol.StatusCompleted, s.waits(id).Status)
	require.Contains(t, s.get("thread/"+id, http.StatusOK), "4 completed")
}

const twoChanges = `name: two-changes
description: Changes files.
roles:
  one: { description: Writes, run: [sh, -c, "echo new > new.txt; echo b >> old.txt; echo mid > mid.txt"] }
  two: { description: Writes, run: [sh, -c, "echo c >> old.txt; rm mid.txt"] }
  judge: { description: Decides, person: true, answer: { $status: [yes, no] } }
graph: { $START: one, one: { passed: two, failed: $FAIL }, two: { passed: judge, failed: $FAIL }, judge: { "yes": $END, "no": one } }
`

// The changes of a run are those from its start to its newest step; the card of its question has the same.
func TestChangesOfARun(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "old.txt"), []byte("a\n"), 0o600))
	for _, args := range [][]string{{"init", "-q"}, {"add", "old.txt"}, {"-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"}} {
		git := exec.Command("git", args...)
		git.Dir = s.dir
		out, err := git.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	id, at := s.run("two-changes.yaml", twoChanges, engine.StartOptions{Workspace: worktree.Options{Mode: worktree.InWorktree}})
	require.Equal(t, protocol.StatusSuspended, at.Status, at.Error)
	for _, path := range []string{"thread/" + id + "/changes", ""} {
		page := s.get(path, http.StatusOK)
		for _, part := range []string{"new.txt", "old.txt", `class="added">&#43;b`, `class="added">&#43;c`} {
			require.Contains(t, page, part, path)
		}
		require.NotContains(t, page, "mid.txt", "it was removed again")
	}
	require.Contains(t, s.get("thread/"+id, http.StatusOK), "/changes")
	require.Contains(t, s.get("", http.StatusOK), `class="status good"><bdi>two</bdi> passed`, "a check of the card")
	head, err := s.engine.Reader.Head(t.Context(), id)
	require.NoError(t, err)
	require.NotContains(t, s.get("thread/"+id+"/step/"+string(head), http.StatusOK), "new.txt", "the last step did not change it")
	// A live page gets the files of the new steps, not of others.
	after := regexp.MustCompile(`/step/([0-9A-Z]{13})`).FindStringSubmatch(s.get("thread/"+id, http.StatusOK))
	require.NotNil(t, after)
	part := s.get("thread/"+id+"?part=steps&after="+after[1], http.StatusOK)
	require.Contains(t, part, "data-append")
	require.NotContains(t, part, "new.txt")
}

// A run shows what is spent of its limits, and each page what is spent of the limit of the day.
func TestSpentOfLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	s.plays()()
	none := s.start("x")
	s.step(none, "more", "y")
	require.NotContains(t, s.get("thread/"+none, http.StatusOK), "<meter")
	id, _ := s.run("loop.yaml", loop, engine.StartOptions{Limits: protocol.Limits{MaxTimeMs: 3_600_000, MaxTokens: 1000}})
	page := s.get("thread/"+id, http.StatusOK)
	require.Equal(t, 2, strings.Count(page, "<meter"))
	require.Contains(t, page, "of 1000 tokens")
	require.NotContains(t, page, "Today")
	f, err := os.OpenFile(s.engine.Reader.Dirs.Config(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("limits: { perDay: { costUsd: 20 } }\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, path := range []string{"", "threads", "stats", "diff", "workflows", "start", "thread/" + id} {
		require.Regexp(t, `Today \$\S+ of \$20`, s.get(path, http.StatusOK), path)
	}
}
