//go:build browser

package webtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// team is a home as after a week of use: something waits, something failed, something is running, and there
// is much else.
type team struct {
	*world
	oldest, newer string // threads that wait for a person
	failed        string // at its step 7
	plan, fork    string // two continuations of the same step
	fix           string // in a worktree, completed
	runs          string // running
	needle        string // one of many
}

const fixFlow = `name: fix
description: Fix a bug; a reviewer decides when it is done.
roles:
  developer: { description: Fixes the bug., goal: "Find the cause, fix it, run the tests." }
  reviewer:
    description: Reviews the fix.
    goal: Read the change and run the tests. Reject what is not proven.
    frontmatter: { type: object, properties: { $status: { enum: [approved, rejected] }, why: { type: string } }, required: [$status, why] }
graph:
  $START: { _: { role: developer, prompt: "{{{$prompt}}}" } }
  developer: { _: { role: reviewer, prompt: "Review the change in the working tree." } }
  reviewer: { approved: { role: $END, prompt: "{{{why}}}" }, rejected: { role: developer, prompt: "Rejected: {{{why}}}" } }
`

const fixPlay = `steps:
  - turns:
      - { say: "An even number of values has two in the middle. I look at how they are taken." }
      - { tool: read_file, args: { path: median.go }, result: "return values[len(values)/2]", delay: 300ms }
      - { tool: edit_file, args: { path: median.go }, result: "edited", delay: 200ms }
    files: { median.go: "package stats\n\nfunc Median(v []float64) float64 {\n\treturn (v[len(v)/2-1] + v[len(v)/2]) / 2\n}\n" }
    delay: 600ms
    output: "The mean of the two in the middle is returned."
    usage: { inputTokens: 18200, outputTokens: 950, costUsd: 0.31 }
  - turns: [{ tool: run_command, args: { command: go test ./... }, result: "--- FAIL: TestMedian/odd", delay: 300ms }]
    delay: 200ms
    value: { $status: rejected, why: "An odd number of values is wrong now: TestMedian/odd fails." }
    usage: { inputTokens: 9100, outputTokens: 240, costUsd: 0.12 }
  - turns:
      - { say: "Both cases, then." }
      - { tool: edit_file, args: { path: median.go }, result: "edited", delay: 200ms }
      - { tool: run_command, args: { command: go test ./... }, result: "ok  stats 0.003s", delay: 200ms }
    files: { median.go: "package stats\n\nfunc Median(v []float64) float64 {\n\tn := len(v)\n\tif n%2 == 1 {\n\t\treturn v[n/2]\n\t}\n\treturn (v[n/2-1] + v[n/2]) / 2\n}\n" }
    delay: 500ms
    output: "Odd and even are told apart; the tests pass."
    usage: { inputTokens: 21400, outputTokens: 1100, costUsd: 0.36 }
  - turns: [{ tool: run_command, args: { command: go test ./... }, result: "ok  stats 0.003s", delay: 200ms }]
    delay: 200ms
    value: { $status: approved, why: "Both cases are tested, and pass." }
    usage: { inputTokens: 9600, outputTokens: 210, costUsd: 0.13 }
`

const nightlyFlow = `name: nightly
description: Brings one package after another up to date.
roles:
  updater: { description: Updates a package., goal: "Update the next one.", frontmatter: { type: object, properties: { $status: { enum: [more, done] } }, required: [$status] } }
graph: { $START: { _: { role: updater, prompt: "Update." } }, updater: { more: { role: updater, prompt: "The next one." }, done: $END } }
`

// newTeam creates a team in a git repository.
func newTeam(w *world, many int) team {
	w.Helper()
	t := team{world: w}
	for name, text := range map[string]string{"release.yaml": regexp.MustCompile(` <[^>]*>(alert\(1\)</script>)?`).ReplaceAllString(release, ""), "fix.yaml": fixFlow, "nightly.yaml": nightlyFlow, "median.go": "package stats\n", ".gitignore": "uwf/\n*.yaml\n"} {
		require.NoError(w, os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o600))
	}
	t.git("init", "-q", "-b", "main")
	t.git("add", ".")
	t.git("commit", "-q", "-m", "first")

	for i := range many {
		task := fmt.Sprintf("Check the invoices of customer %d", i)
		if i == many/3 {
			task = "Check the invoices of the zebra farm"
		}
		id := t.uwf("thread", "start", "./talk.yaml", "-p", task)
		if i == many/3 {
			t.needle = id
		}
	}
	t.oldest = t.uwf("run", "./release.yaml", "-p", "version 2.4.0")
	t.newer = t.uwf("run", "./release.yaml", "-p", "version 2.5.0")
	t.play("steps:\n" + strings.Repeat("  - { value: { $status: more }, usage: { inputTokens: 5000, outputTokens: 100, costUsd: 0.02 } }\n", 6) + "  - fail: the registry does not answer (503)\n")
	t.failed = t.uwf("run", "./nightly.yaml", "-p", "Update all packages")
	t.play(strings.Replace(script, "said: it }", "said: Keep what was asked lately in memory. }", 1))
	t.plan = t.uwf("run", "./two.yaml", "-p", "a quick search")
	t.fork = t.uwf("thread", "fork", t.plan+"@1")
	t.play(strings.Replace(script, "said: it }", "said: Build an index at night. }", 1))
	t.uwf("thread", "resume", t.fork)
	t.play(fixPlay)
	t.fix = t.uwf("run", "./fix.yaml", "-p", "median() is wrong for an even number of values", "--workspace", "worktree")
	require.NoError(w, os.WriteFile(filepath.Join(w.home, "slow.yaml"), []byte("steps:\n  - turns: [{ say: I read the report first. }]\n    delay: 10m\n    value: { $status: done }\n"), 0o600))
	t.runs = t.uwf("run", "./talk.yaml", "-p", "Summarize the report", "--workspace", "worktree", "--agent", "slow", "--background")
	w.Cleanup(func() { // the test's context is cancelled by now
		of := w.command("thread", "stop", t.runs)
		stop := exec.Command(of.Path, of.Args[1:]...)
		stop.Dir, stop.Env = of.Dir, of.Env
		_ = stop.Run() // it may be stopped already
	})
	require.Eventually(w, func() bool { return strings.Contains(t.shown(t.runs), `"running"`) }, patience, pause)
	t.play(script)
	return t
}

// play sets the model's answer from now on.
func (t team) play(text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(t.home, "script.yaml"), []byte(text), 0o600))
}

func (t team) git(args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	cmd.Dir = t.home
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// shown returns a thread's state, according to uwf.
func (w *world) shown(id string) string {
	w.Helper()
	data, err := w.command("thread", "show", id, "--format", "json").Output()
	require.NoError(w, err)
	return string(data)
}

// status waits until a thread has a status.
func (w *world) status(id, want string) {
	w.Helper()
	require.Eventually(w, func() bool {
		var at struct{ Status string }
		return json.Unmarshal([]byte(w.shown(id)), &at) == nil && at.Status == want
	}, patience, pause, "%s is not %s", id, want)
}
