//go:build instruments

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stage is a demo that runs the other examples, with the demo's agents and model.
type stage struct {
	*demo
	t *testing.T
}

func newStage(t *testing.T, bin string) *stage {
	t.Helper()
	d := &demo{bin: bin, environ: os.Environ(), out: io.Discard, progress: io.Discard, now: time.Now, root: t.TempDir()}
	require.NoError(t, d.build(t.Context()))
	stop, err := d.prepare(context.WithoutCancel(t.Context())) // it ends the model itself
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return &stage{demo: d, t: t}
}

// configure writes the config: the demo's agents, and more lines.
func (s *stage) configure(more string) {
	s.t.Helper()
	config := fmt.Sprintf(`
providers: { script: { baseUrl: %s } }
models: { main: { provider: script, name: scripted } }
defaultModel: main
agents:
  builtin: { command: %s }
  react: { command: %s }
  llm: { command: %s }
defaultAgent: builtin
%s`, quote(s.model.baseURL), quote(s.program("uwf-builtin")), quote(s.program("uwf-react")), quote(s.program("uwf-llm")), more)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.home, "config.yaml"), []byte(config), 0o600))
}

// outcome is a thread's state after a uwf command.
type outcome struct {
	Thread  string `json:"thread"`
	Status  string `json:"status"`
	Message string `json:"suspendMessage"`
	Said    string `json:"message"` // the workflow's result text
}

// play runs a uwf command that steps a thread, and expects its exit status.
func (s *stage) play(status int, args ...string) outcome {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), s.program("uwf"), append(args, "--format", "json")...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = s.repo, s.childEnv(), &stdout, &stderr
	_ = c.Run()
	require.Equal(s.t, status, c.ProcessState.ExitCode(), "%s", &stderr)
	var o outcome
	require.NoError(s.t, json.Unmarshal(stdout.Bytes(), &o))
	return o
}

// steps returns a thread's steps, as "role agent output".
func (s *stage) steps(thread string) []string {
	s.t.Helper()
	var history struct {
		Steps []struct {
			Role, Agent string
			Output      json.RawMessage
		}
	}
	require.NoError(s.t, s.ask(s.t.Context(), &history, "thread", "steps", thread))
	var list []string
	for _, step := range history.Steps {
		if step.Role != "" {
			list = append(list, fmt.Sprintf("%s %s %s", step.Role, step.Agent, step.Output))
		}
	}
	return list
}

// code returns the project's source code.
func (s *stage) code() string {
	s.t.Helper()
	code, err := os.ReadFile(filepath.Join(s.project, "stats.go"))
	require.NoError(s.t, err)
	return string(code)
}

// replaceCode edits it and adds the necessary import.
func (s *stage) replaceCode(old, text string) {
	s.t.Helper()
	code := strings.NewReplacer(old, text, "package stats\n", "package stats\n\nimport \"slices\"\n").Replace(s.code())
	require.NotEqual(s.t, s.code(), code)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.project, "stats.go"), []byte(code), 0o600))
}

func (s *stage) git(args ...string) {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	c.Dir = s.project
	out, err := c.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

// TestExamples runs the five examples to their ends, on our own agents with real tools; only the model is
// scripted. Their costs are in docs/examples.md.
func TestExamples(t *testing.T) {
	t.Parallel()
	built := newStage(t, "") // once for all
	require.NoError(t, built.goBuild(t.Context(), built.bin, "./cmd/uwf-web"))
	for name, run := range map[string]func(*stage) (thread string){
		"solve-issue": solveIssue, "review-diff": reviewDiff, "write-tests": writeTests,
		"research": research, "release-notes": releaseNotes,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, built.bin)
			checkPicture(t, s, name)
			checkCost(t, name, s.cost(run(s)))
		})
	}
	t.Run("many at once", func(t *testing.T) { testManyAtOnce(t, built) })
}

func solveIssue(s *stage) string {
	thread := recorded(s)
	require.NoError(s.t, s.expectTests(s.t.Context(), green))
	return thread
}

// An agent with tools reads a commit, and another one without tools decides.
func reviewDiff(s *stage) string {
	t := s.t
	s.configure("agentOverrides: { review-diff: { judge: llm } }\nbuiltin: { allowCommands: [git] }\n")
	s.replaceCode("	return xs[len(xs)/2]", "	slices.Sort(xs)\n	return xs[len(xs)/2]")
	s.git("commit", "-qam", "sort")

	run := s.play(0, "run", "examples/review-diff.yaml", "-p", "the last commit", "--cwd", s.project)
	require.Equal(t, "completed", run.Status)
	steps := s.steps(run.Thread)
	require.Len(t, steps, 2)
	require.Contains(t, steps[0], "reader uwf-builtin")
	require.Contains(t, steps[0], "reordered")
	require.Contains(t, steps[1], "judge uwf-llm")
	require.Contains(t, steps[1], "sort a copy")

	s.git("commit", "-q", "--allow-empty", "-m", "nothing")
	clean := s.play(0, "run", "examples/review-diff.yaml", "-p", "the last commit", "--cwd", s.project)
	require.Len(t, s.steps(clean.Thread), 1, "there is nothing to decide about")
	return run.Thread
}

// The tests fail once because one of them is wrong, and pass once although the code is wrong.
func writeTests(s *stage) string {
	s.configure("builtin: { allowCommands: [go] }\n")
	require.NoError(s.t, os.Remove(filepath.Join(s.project, "stats_test.go")))
	s.replaceCode("	return xs[len(xs)/2]", "	xs = slices.Sorted(slices.Values(xs))\n	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2")
	code := s.code()
	run := s.play(0, "run", "examples/write-tests.yaml", "-p", "stats.go has no tests", "--cwd", s.project)
	require.Equal(s.t, "completed", run.Status)
	var way []string
	for _, step := range s.steps(run.Thread) {
		way = append(way, strings.Fields(step)[0])
	}
	require.Equal(s.t, strings.Fields("author tests author tests sceptic author tests sceptic"), way)
	require.Equal(s.t, code, s.code(), "the planted bug is gone")
	require.NoError(s.t, s.expectTests(s.t.Context(), green))
	return run.Thread
}

// First the reader asks for more, then a person, and both get it.
func releaseNotes(s *stage) string {
	s.configure("builtin: { allowCommands: [git] }\n")
	s.git("commit", "-q", "--amend", "-m", "Mean and Median of a list")
	run := s.play(6, "run", "examples/release-notes.yaml", "-p", "the whole history", "--cwd", s.project)
	require.Contains(s.t, run.Message, "Shall they go out?")
	run = s.play(0, "thread", "answer", run.Thread, "--set", "$status=approved", "--until-end")
	require.Equal(s.t, "completed", run.Status)
	notes, err := os.ReadFile(filepath.Join(s.project, "RELEASE-NOTES.md"))
	require.NoError(s.t, err)
	require.Contains(s.t, string(notes), "Mean and Median of a list: right for any list")
	require.Len(s.t, s.steps(run.Thread), 6)
	return run.Thread
}

// Without permission to fetch pages the thread waits for it; with it the same conversation continues.
func research(s *stage) string {
	t := s.t
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body><h1>Deep thought</h1><p>The answer is <b>42</b>. Anything else is not.</p></body></html>")
	}))
	t.Cleanup(page.Close)
	const agents = "agentOverrides: { research: { researcher: react, checker: llm } }\n"
	s.configure(agents)
	run := s.play(6, "run", "examples/research.yaml", "-p", "What is the answer? See "+page.URL, "--cwd", s.project)
	require.Equal(t, "suspended", run.Status)
	require.Contains(t, run.Message, "no tool to fetch pages")
	require.Contains(t, run.Message, "builtin.allowFetch")

	s.configure(agents + "builtin: { allowFetch: true }\n")
	run = s.play(6, "thread", "resume", run.Thread, "-p", "Now you may.")
	require.Contains(t, run.Message, "public internet", "this machine is none of it")

	s.configure(agents + "builtin: { allowFetch: true, allowPrivate: true }\n")
	run = s.play(0, "thread", "resume", run.Thread, "-p", "Now you may read this machine, too.")
	require.Equal(t, "completed", run.Status)
	steps := s.steps(run.Thread)
	require.Contains(t, steps[len(steps)-1], "checker uwf-llm")
	require.Contains(t, steps[len(steps)-1], "42")
	return run.Thread
}
