//go:build !windows

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/programtest"
)

var raceRounds = flag.Int("remote-races", 4, "how often the homes of TestRemoteRaces step threads of a remote at once")

// Homes race for steps of threads with files at a remote: two over ssh, two in its directory, one of these
// with a clock that is wrong by an hour. Any uwf is killed at any time, and those of a directory at any
// operation. Each thread has one chain that contains every acknowledged step once, and a witness next to the
// agents has seen no more runs than were killed or came late.
func TestRemoteRaces(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("git")
	require.NoError(t, err, "git is needed")
	w := newRacing(t)
	for range *raceRounds {
		var all sync.WaitGroup
		thread := w.threads[rand.N(len(w.threads))]
		for home := range w.homes {
			all.Go(func() { w.race(home, thread) })
		}
		all.Wait()
	}
	w.check()
}

// racing is a remote, the homes that use it, and the results of their steps.
type racing struct {
	t       *testing.T
	dir     string
	homes   []string // each home's address for the remote
	threads []string

	mu     sync.Mutex
	made   map[string][]string // acknowledged steps, by thread
	failed map[string]int      // number of others
	words  map[string]int
}

const raceAgent = `#!/bin/sh
echo "$UWF_VISIT_KEY" >>"$WITNESS"
echo "$UWF_VISIT_KEY" >>log
exec uwf-mock --mock-data "$SCENARIO" "$@"
`

const raceWorkflow = `name: race
description: One role, again and again.
roles:
  worker:
    description: Works.
    goal: You work.
    capabilities: []
    procedure: Work.
    output: Something.
    frontmatter: { type: object, properties: { $status: { enum: [again, done] } }, required: [$status] }
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker: { again: { role: worker, prompt: "Again." }, done: { role: $END, prompt: "Done." } }
`

func newRacing(t *testing.T) *racing {
	w := &racing{t: t, dir: t.TempDir(), made: map[string][]string{}, failed: map[string]int{}, words: map[string]int{}}
	write := func(name, text string) string {
		path := filepath.Join(w.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		programtest.Write(t, path, text)
		return path
	}
	write("bin/uwf-remote-ssh", "#!/bin/sh\nexec uwf remote serve \"${1#host:}\"\n") // as ssh does at the far end
	write("agent", raceAgent)
	write("race.yaml", raceWorkflow)
	write("scenario.yaml", "steps:\n"+strings.Repeat("  - { role: worker, output: \"---\\n$status: again\\n---\\nOne.\\n\" }\n", 2**raceRounds+20))
	write("gitconfig", "[user]\n\tname = A\n\temail = a@example.com\n")
	team := filepath.Join(w.dir, "team")
	w.homes = []string{"host:" + team, "host:" + team, "kill://" + team, "kill://" + team}
	write("clone-0/a", "one\n")
	w.must(0, "git", "init", "-q")
	w.must(0, "git", "add", ".")
	w.must(0, "git", "commit", "-q", "-m", "first")
	for home, address := range w.homes {
		if home > 0 {
			require.NoError(t, os.MkdirAll(w.clone(home), 0o755))
			w.must(home, "git", "clone", "-q", w.clone(0), ".")
		}
		w.must(home, "uwf", "remote", "add", "--trust", "team", address)
	}
	for range 2 {
		out := w.must(0, "uwf", "thread", "start", "../race.yaml", "-p", "x", "--format", "json")
		var started struct{ Thread string }
		require.NoError(t, json.Unmarshal([]byte(out), &started))
		w.threads = append(w.threads, started.Thread)
		w.must(0, "uwf", "push", started.Thread, "team")
	}
	return w
}

func (w *racing) clone(home int) string { return filepath.Join(w.dir, fmt.Sprint("clone-", home)) }

// command returns a command that a home runs in its clone.
func (w *racing) command(home int, more []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = w.clone(home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "GIT_CONFIG_GLOBAL="+filepath.Join(w.dir, "gitconfig"), "UWF_HOME="+filepath.Join(w.dir, fmt.Sprint("home-", home)),
		"PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"), "WITNESS="+filepath.Join(w.dir, "witness"), "SCENARIO="+filepath.Join(w.dir, "scenario.yaml"))
	if home == len(w.homes)-1 {
		cmd.Env = append(cmd.Env, "CLOCK_AHEAD="+[]string{"-1h", "-1h", "0s", "1h"}[rand.N(4)])
	}
	cmd.Env = append(cmd.Env, more...)
	return cmd
}

func (w *racing) must(home int, name string, args ...string) string {
	w.t.Helper()
	cmd := w.command(home, nil, name, args...)
	out, err := cmd.Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		w.t.Fatalf("%s %q: %v\n%s", name, args, err, ended.Stderr)
	}
	require.NoError(w.t, err)
	return string(out)
}

// race makes a step at the remote, or is killed. It discards steps that a home has made alone because another
// was faster.
func (w *racing) race(home int, thread string) {
	var more []string
	verbs := []string{"put", "after put", "swap", "after swap", "put-objects", "after put-objects", "get-objects"}
	if rand.N(2) == 0 && strings.HasPrefix(w.homes[home], "kill:") {
		more = append(more, "KILL_AT="+verbs[rand.N(len(verbs))])
	}
	cmd := w.command(home, more, "uwf", "thread", "step", thread, "--remote", "team", "--lease", "1s", "--cwd", ".", "--agent", "sh "+filepath.Join(w.dir, "agent"), "--format", "json")
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		w.t.Error(err)
		return
	}
	if rand.N(3) == 0 {
		killer := time.AfterFunc(rand.N(4*time.Second), func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer killer.Stop()
	}
	err := cmd.Wait()
	var answer struct{ StepHash string }
	if decoded := json.Unmarshal([]byte(out.String()), &answer); err == nil && (decoded != nil || answer.StepHash == "") {
		w.t.Errorf("no step in %q: %v", out.String(), decoded)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.made[thread] = append(w.made[thread], answer.StepHash)
		return
	}
	w.failed[thread]++
	word := "killed"
	if _, code, ok := strings.Cut(said.String(), `{"error":{"code":"`); ok {
		word, _, _ = strings.Cut(code, `"`)
	}
	switch {
	case word != "failed":
	case strings.Contains(said.String(), "changed here"): // by a killed agent
		word = "changed"
	case strings.Contains(said.String(), "another directory cannot be given"): // it made the last step as well
		word = "settled"
	default:
		w.t.Error(said.String())
	}
	w.words[word]++
	if word == "diverged" {
		_ = w.command(home, nil, "uwf", "pull", thread, "team", "--discard").Run()
	}
}

// check checks all chains from every home.
func (w *racing) check() {
	hashes := regexp.MustCompile(`"hash":"\w+"`)
	seen, err := os.ReadFile(filepath.Join(w.dir, "witness"))
	require.NoError(w.t, err)
	runs, steps, made, failed := strings.Count(string(seen), "\n"), 0, 0, 0
	for _, thread := range w.threads {
		for home := range w.homes { // a home killed with an unpushed step is ahead
			_ = w.command(home, nil, "uwf", "push", thread, "team").Run()
		}
		first := ""
		for home := range w.homes {
			w.must(home, "uwf", "pull", thread, "team", "--discard")
			list := w.must(home, "uwf", "thread", "steps", thread, "--format", "json")
			chain := strings.Join(hashes.FindAllString(list, -1), " ")
			if home == 0 {
				first = chain
				steps += strings.Count(list, `"role":"worker"`)
			}
			require.Equal(w.t, first, chain, "home %d", home)
		}
		for _, step := range w.made[thread] {
			require.Equal(w.t, 1, strings.Count(first, `"hash":"`+step+`"`), "step %s was acknowledged", step)
		}
		made, failed = made+len(w.made[thread]), failed+w.failed[thread]
	}
	require.GreaterOrEqual(w.t, runs, steps)
	require.LessOrEqual(w.t, runs, steps+failed)
	require.GreaterOrEqual(w.t, steps, made)
	for home := range w.homes {
		w.must(home, "uwf", "cas", "fsck")
	}
	w.must(0, "uwf", "--home", filepath.Join(w.dir, "team"), "cas", "fsck")
	for word := range w.words {
		require.Contains(w.t, []string{"killed", "locked", "moved", "diverged", "changed", "settled"}, word)
	}
	w.t.Logf("%d rounds of %d homes: %d steps in the chains, %d acknowledged, %d runs of agents; not acknowledged: %v", *raceRounds, len(w.homes), steps, made, runs, w.words)
}
