//go:build agents

package agentstest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is a real program with our adapter.
type program struct {
	name    string // name of the adapter, without "uwf-"
	adapter string // if different from name
	version string // the version under test
	npm     npm
	speak   dialect
	args    []string // configured for the agent
	// environ returns the variables that configure the endpoint; home is a private directory.
	environ func(t *testing.T, url, bin, home string) map[string]string
	// hand contains the arguments with which a user runs it once without uwf, preceded by the program if it
	// is not the one from npm.
	hand []string
	by   npm
	// refusal is the status with which the endpoint rejects a call; default 401. The program retries others
	// for minutes.
	refusal int
	// untitled means that it asks its model for session titles and does not report their cost.
	untitled bool
	// without lists stories that the program cannot perform, with the reason.
	without map[string]string
	more    []story // stories for this program only
}

// bench is one program in one world.
type bench struct {
	*world
	model    *model
	home     string   // of the program: the user's home directory
	hand     []string // a user's command line
	untitled bool     // it asks for titles and does not report their cost
	refusal  int      // status with which the endpoint rejects
	// startsOver means that the program cannot continue a session of an earlier step.
	startsOver bool
}

// story is a user scenario.
type story struct {
	name string
	tell func(t *testing.T, b *bench)
}

// stories are the scenarios for every program.
var stories = append([]story{
	{"first run", firstRun}, {"after a run by hand", afterHand}, {"what is counted was billed", counted}, {"tool call", toolCall}, {"continue after a bad frontmatter", badFrontmatter},
	{"resume in a later step", resume}, {"a killed run", killed}, {"a model error", modelError}, {"an @ is no mention", mentions},
	{"writes elsewhere are refused", confinedStory}, {"settings of a clone start nothing", aClone},
}, pastStories...)

// tellAll runs all stories with a program.
func tellAll(t *testing.T, p program) {
	t.Parallel()
	bin := p.npm.install(t)
	p.version = p.npm.version(t)
	m, url := newModel(t, p.speak)
	home := t.TempDir()
	w := newWorld(t, "uwf-"+cmp.Or(p.adapter, p.name), p.args, p.environ(t, url, bin, home))
	byHand := bin
	if p.by.bin != "" {
		byHand = p.by.install(t)
	}
	for _, s := range append(slices.Clone(stories), p.more...) {
		t.Run(s.name, func(t *testing.T) {
			if why := p.without[s.name]; why != "" {
				report.add(p, s.name, "not possible: "+why)
				return
			}
			defer func() {
				if t.Failed() {
					report.add(p, s.name, "FAILED")
				}
			}()
			s.tell(t, &bench{world: w.begin(t), model: m, home: home, hand: append([]string{byHand}, p.hand...), refusal: cmp.Or(p.refusal, 401), untitled: p.untitled, startsOver: p.without["resume in a later step"] != ""})
			report.add(p, s.name, "ran")
		})
	}
}

func firstRun(t *testing.T, b *bench) {
	b.model.play(reply{text: answer("moon")})
	status, said, err := b.step()
	require.NoError(t, err, said)
	require.Equal(t, "idle", status)
	last := b.last()
	require.Equal(t, "moon", last.Output["word"])
	require.NotEmpty(t, last.SessionID)
	require.Contains(t, b.shown(last.Hash), "I wrote moon.")
	require.NotZero(t, last.Usage["outputTokens"], "what it cost is known: %v", last.Usage)
}

// afterHand checks that a user who has used the program without uwf, unconfined, can use it with uwf. All
// later stories use the same home.
func afterHand(t *testing.T, b *bench) {
	require.NotEmpty(t, b.hand[1:])
	b.model.play(reply{text: "By hand."})
	cmd := exec.CommandContext(t.Context(), b.hand[0], b.hand[1:]...)
	cmd.Dir, cmd.Env = filepath.Join(b.dir, "work"), slices.Clone(b.env)
	for name, value := range b.agent["env"].(map[string]string) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "By hand.")
	b.configure(map[string]any{"startTimeout": "2m"}) // it may wait for a lock that is not yet released
	firstRun(t, b)
	b.configure(nil)
}

func toolCall(t *testing.T, b *bench) {
	b.model.play(reply{text: "I look first.", run: "printf from-the-%sth-tool 42"}, reply{text: answer("sun")})
	b.mustStep()
	last := b.last()
	require.Equal(t, "sun", last.Output["word"])
	shown := b.shown(last.Hash)
	require.Contains(t, shown, "I look first.")
	require.Contains(t, shown, "printf from-the-%sth-tool 42", "the call")
	require.Contains(t, shown, "from-the-42th-tool", "its result")
	require.Contains(t, shown, "I wrote sun.")
}

func badFrontmatter(t *testing.T, b *bench) {
	b.model.play(reply{text: "The word is: star."}, reply{text: answer("star")})
	b.mustStep()
	require.Equal(t, "star", b.last().Output["word"])
	asked := b.model.asked()
	require.Len(t, asked, 2)
	require.Contains(t, asked[1], "The word is: star.", "the correction came in the same session")
}

func resume(t *testing.T, b *bench) {
	b.model.play(reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: too grey\n---\n"}, reply{text: answer("rain")})
	b.mustStep()
	writer := b.last()
	b.mustStep()
	b.mustStep()
	again := b.last()
	require.Equal(t, "rain", again.Output["word"])
	require.Equal(t, writer.SessionID, again.SessionID)
	asked := b.model.asked()
	require.Len(t, asked, 3)
	require.Contains(t, asked[2], "I wrote fog.", "the writer's session knows its first answer")
	require.Contains(t, asked[2], "too grey")
	require.InDelta(t, writer.Usage["outputTokens"], again.Usage["outputTokens"], 0, "usage is of each run alone")
}

func killed(t *testing.T, b *bench) {
	b.model.play(reply{text: "First this.", run: "echo before-the-kill"}, reply{hold: true})
	wait, _ := b.background()
	pid := b.agentPid()
	require.Eventually(t, func() bool { return len(b.model.asked()) == 2 }, patience, 10*time.Millisecond, "the model is asked again after the tool")
	// Programs write their transcript with a delay.
	require.Eventually(t, func() bool {
		return holds(b.home, "before-the-kill") || holds(filepath.Join(b.dir, "home", "agents"), "before-the-kill")
	}, patience, 50*time.Millisecond, "the program has written its session")
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Error(t, wait())
	require.Eventually(t, func() bool { return len(processesIn(b.dir)) == 0 }, patience, 50*time.Millisecond, "nothing of the program is left")
	b.model.play(reply{text: answer("snow")})
	b.mustStep()
	require.Equal(t, "snow", b.last().Output["word"])
	require.Contains(t, b.model.asked()[0], "before-the-kill", "the session of the killed run went on")
}

func modelError(t *testing.T, b *bench) {
	b.model.play(reply{status: 400, text: "the-reason-of-the-endpoint"})
	_, said, err := b.step()
	require.Error(t, err)
	require.Contains(t, said, "the-reason-of-the-endpoint")
	b.model.play(reply{text: answer("wind")})
	b.mustStep()
	require.Equal(t, "wind", b.last().Output["word"], "the thread is where it was")
}

// counted checks that the thread's token count matches the endpoint's, including tools, corrections, and
// rejected calls of a session.
func counted(t *testing.T, b *bench) {
	b.configure(map[string]any{"retry": map[string]any{"attempts": 2, "backoff": "10ms", "on": []string{"rate-limit", "server", "crash"}}})
	defer b.configure(nil)
	script, side := b.model.bill()
	b.model.play(reply{text: "I look first.", run: "echo a"}, reply{text: "No block."}, reply{text: answer("fog")},
		reply{text: "---\n$status: bad\nwhy: too grey\n---\n"})
	b.mustStep()
	b.mustStep()
	b.model.play(reply{status: b.refusal, text: "refused"})
	_, said, _ := b.step() // it fails, suspends, or is rate limited
	require.Contains(t, said, "refused")
	b.check(script, side)
	b.model.play(reply{text: answer("rain")})
	if status, _, _ := b.step(); status == "rate-limited" || status == "suspended" {
		b.json(new(any), "thread", "resume", b.thread, "-c", "1")
	}
	require.Equal(t, "rain", b.last().Output["word"])
	b.check(script, side)
}

// check compares the thread's count with the endpoint's.
func (b *bench) check(script, side int) {
	b.t.Helper()
	allScript, allSide := b.model.bill()
	billed := allScript - script
	if !b.untitled {
		billed += allSide - side
	}
	var shown struct {
		Totals struct {
			Usage struct{ InputTokens, CacheReadTokens, CacheWriteTokens, OutputTokens int }
		}
	}
	b.json(&shown, "thread", "show", b.thread)
	u := shown.Totals.Usage
	require.Equal(b.t, billed*inputOfOne, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, "of %d answers", billed)
	require.Equal(b.t, billed*outputOfOne, u.OutputTokens)
}

// fork checks that a forked thread continues in a copy of the session, and that the session itself is
// unaffected.
func fork(t *testing.T, b *bench) {
	b.model.play(reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: too grey\n---\n"}, reply{text: answer("rain")}, reply{text: answer("hail")})
	b.mustStep()
	original := b.last()
	b.mustStep()
	var forked struct{ Thread string }
	b.json(&forked, "thread", "fork", b.thread+"@-1")
	copied := &bench{world: b.world.of(forked.Thread), model: b.model}
	copied.mustStep()
	require.Equal(t, "rain", copied.last().Output["word"])
	require.NotEqual(t, original.SessionID, copied.last().SessionID)
	require.InDelta(t, original.Usage["outputTokens"], copied.last().Usage["outputTokens"], 0, "what the original has used is not the copy's")
	b.mustStep()
	require.Equal(t, "hail", b.last().Output["word"])
	require.Equal(t, original.SessionID, b.last().SessionID)
	asked := b.model.asked()
	require.Contains(t, asked[2], "I wrote fog.")
	require.Contains(t, asked[3], "I wrote fog.")
	require.NotContains(t, asked[3], "I wrote rain.")
}

// forkInRepository checks that in a git repository a fork works in a separate worktree, and still continues
// in a copy.
func forkInRepository(t *testing.T, b *bench) {
	shell(t, filepath.Join(b.dir, "work"), `rm -rf .git && git init -q && git add -A && git -c user.name=T -c user.email=t@example.com commit -q -m x`)
	defer os.RemoveAll(filepath.Join(b.dir, "work", ".git"))
	b.model.play(reply{text: "I look first.", run: "echo what-only-the-ses''sion-knows"}, reply{text: answer("fog")},
		reply{text: "---\n$status: bad\nwhy: too grey\n---\n"}, reply{text: answer("rain")})
	b.mustStep()
	b.mustStep()
	copied := b.forkAt("-1")
	copied.mustStep()
	require.Equal(t, "rain", copied.last().Output["word"])
	require.Contains(t, b.sessionOf(copied.last().Hash), "forked")
	require.Contains(t, b.model.asked()[3], "what-only-the-session-knows")
}

// told checks that a message to a working program reaches its model once, and is part of the step: at its
// next request, or if the program cannot receive messages while it works, after its answer, in the same
// session.
func told(at int) func(t *testing.T, b *bench) {
	return func(t *testing.T, b *bench) {
		const words = "Leave the parser alone, see @/etc/hostname."
		began, go_ := filepath.Join(b.dir, "work", "began"), filepath.Join(b.dir, "work", "go")
		b.model.play(reply{text: "I begin.", run: "touch began; until test -e go; do sleep 0.1; done; sleep 3"},
			reply{text: answer("calm")}, reply{text: answer("still")})
		wait, stderr := b.background()
		require.Eventually(t, func() bool { _, err := os.Stat(began); return err == nil }, patience, 50*time.Millisecond)
		var said struct{ Queued bool }
		b.json(&said, "thread", "message", b.thread, words)
		require.True(t, said.Queued)
		require.NoError(t, os.WriteFile(go_, nil, 0o600))
		require.NoError(t, wait(), stderr.String())
		asked := b.model.asked()
		require.Len(t, asked, at)
		require.NotContains(t, asked[at-2], "Leave the parser alone")
		require.Equal(t, 1, strings.Count(asked[at-1], "Leave the parser alone"), "it is told once")
		if hostname, err := os.ReadFile("/etc/hostname"); err == nil && len(hostname) > 5 {
			require.NotContains(t, asked[at-1], strings.TrimSpace(string(hostname)), "it is no mention")
		}
		last := b.last()
		require.Equal(t, []string{"calm", "still"}[at-2], last.Output["word"])
		require.Equal(t, 1, strings.Count(b.shown(last.Hash), "Leave the parser alone"), "it is a turn of the step")
		b.model.play(reply{text: "---\n$status: bad\nwhy: too grey\n---\n"}, reply{text: answer("rain")})
		b.mustStep()
		b.mustStep()
		require.NotContains(t, b.model.asked()[0], "Leave the parser alone", "nobody is told again")
	}
}

// holds reports whether any file below a directory contains a text.
func holds(dir, text string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // files that disappear are ignored
		if err == nil && d.Type().IsRegular() && !found {
			data, _ := os.ReadFile(path)
			found = bytes.Contains(data, []byte(text))
		}
		return nil
	})
	return found
}

// processesIn lists processes whose working directory is dir or below.
func processesIn(dir string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is valid
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) {
			found = append(found, link)
		}
	}
	return found
}

// results collects what was run.
type results struct {
	mu    sync.Mutex
	lines []string
}

var report results

func (r *results) add(p program, story, how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%-14s %-10s %-34s %s", p.name, p.version, story, how))
}

func (r *results) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(w, "\nWhat really ran, against a scripted model on this machine:\n%s\n", strings.Join(r.lines, "\n"))
}
