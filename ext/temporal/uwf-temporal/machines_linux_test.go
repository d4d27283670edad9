//go:build temporal

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/ext/temporal/temporaltest"
	"github.com/united-workforce/uwf/protocol"
)

const loopWorkflow = `name: loop
description: One role that has its turn again and again.
roles:
  worker:
    description: Works.
    goal: You work.
    frontmatter:
      type: object
      properties: { $status: { enum: [again, done] }, note: { type: string } }
      required: [$status, note]
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker:
    again: { role: worker, prompt: "Again: {{{note}}}" }
    done: { role: $END, prompt: "Done." }
`

const loopScript = `steps:
  - value: { $status: again, note: one }
  - value: { $status: again, note: two }
  - value: { $status: again, note: three }
  - value: { $status: again, note: four }
  - value: { $status: done, note: five }
`

// The agent of these tests notes each step that it has finished where no engine reaches.
const witnessed = `uwf-mock --mock-data "$SCRIPT" "$@" || exit
echo "$UWF_THREAD $UWF_HEAD" >> "$WITNESS"
`

// team is a remote, a Temporal server and what their users have.
type team struct {
	dir     string
	bin     string // of the programs that are tested
	server  *temporaltest.Server
	environ []string
}

func newTeam(t *testing.T) *team {
	t.Helper()
	w := &team{dir: t.TempDir(), bin: filepath.Join(temporaltest.Root(t), "bin"), server: temporaltest.Start(t)}
	for name, text := range map[string]string{
		"loop.yaml": loopWorkflow, "script.yaml": loopScript, "agent.sh": witnessed,
		"home/config.yaml":   fmt.Sprintf("agents:\n  scripted: { command: sh, args: [%s] }\ndefaultAgent: scripted\n", w.path("agent.sh")),
		"home/temporal.yaml": fmt.Sprintf("remote: team\naddress: %s\ndir: %s\nslots: %d\nsilence: 3s\nlease: 5s\nwatch: 200ms\n", w.server.Address, w.path("slots"), slots),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
		require.NoError(t, os.WriteFile(w.path(name), []byte(text), 0o600))
	}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "UWF_") && !strings.HasPrefix(entry, "OCAS_") {
			w.environ = append(w.environ, entry)
		}
	}
	w.environ = append(w.environ, "PATH="+w.bin+":"+os.Getenv("PATH"), "UWF_HOME="+w.path("home"), "SCRIPT="+w.path("script.yaml"), "WITNESS="+w.path("witness"))
	w.run(t, "uwf", "remote", "add", "team", w.path("team"))
	return w
}

const slots = 3

func (w *team) path(name string) string { return filepath.Join(w.dir, name) }

// command is one of our programs. The test's own environment does not reach it.
func (w *team) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.bin, name), args...)
	cmd.Dir, cmd.Env = w.dir, w.environ
	return cmd
}

// run runs a program, which must go well, and returns what it prints.
func (w *team) run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := w.command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s%s", name, args, out, stderr.Bytes())
	return out
}

// ask runs a program and reads the JSON that it prints.
func ask[T any](t *testing.T, w *team, name string, args ...string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(w.run(t, name, append(args, "--format", "json")...), &v))
	return v
}

// machine is a worker that may die.
type machine struct {
	team *team
	cmd  *exec.Cmd
}

func (m *machine) start(t *testing.T) {
	t.Helper()
	m.cmd = m.team.command("uwf-temporal", "worker")
	out, err := os.OpenFile(m.team.path("workers.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	m.cmd.Stdout, m.cmd.Stderr = out, out
	require.NoError(t, m.cmd.Start())
}

// tree is a process with all that it has started.
func tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", all[i], all[i]))
		for _, field := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func signal(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// threadsOf is how many threads the test has; MACHINES_THREADS says otherwise.
func threadsOf(t *testing.T) int {
	n := 40
	if text := os.Getenv("MACHINES_THREADS"); text != "" {
		_, err := fmt.Sscan(text, &n)
		require.NoError(t, err)
	}
	return n
}

// Workers are killed and frozen, alone or with all that runs on their machine, and the
// server of Temporal is killed: each thread has one chain, that of a single machine.
func TestMachinesThatDie(t *testing.T) {
	w := newTeam(t)
	threads := threadsOf(t)
	dialled := w.server.Dial(t)
	t.Cleanup(dialled.Close)
	single := ask[protocol.RunOutput](t, w, "uwf", "run", "./loop.yaml", "-p", "Look at it")
	var ids []string
	for range threads {
		ids = append(ids, ask[protocol.ThreadStarted](t, w, "uwf", "thread", "start", "./loop.yaml", "-p", "Look at it").Thread)
	}
	w.run(t, "uwf", append(append([]string{"push"}, ids...), "team")...)
	require.NoError(t, os.Remove(w.path("witness")))

	machines := make([]*machine, 3)
	for i := range machines {
		machines[i] = &machine{team: w}
		machines[i].start(t)
	}
	begun := time.Now()
	var running []client.WorkflowRun
	for _, id := range ids {
		r, err := dialled.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: flow.ID("team", id), TaskQueue: flow.Queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, flow.Name, flow.Thread{Remote: "team", Thread: id, Silence: 3})
		require.NoError(t, err)
		running = append(running, r)
	}
	over := make(chan struct{})
	var chaos sync.WaitGroup
	kills, freezes := 0, 0
	chaos.Go(func() { kills, freezes = disturb(t, w, machines, over) })
	for _, r := range running {
		var ended flow.Ended
		require.NoError(t, r.Get(t.Context(), &ended), "workers: %s", tail(w.path("workers.log")))
		require.Equal(t, protocol.StatusCompleted, ended.Status)
	}
	took := time.Since(begun)
	close(over)
	chaos.Wait()
	for _, m := range machines { // they end by themselves, with nothing in flight
		require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, m.cmd.Wait())
	}

	w.run(t, "uwf", "fetch", "team")
	for _, id := range ids {
		sameRun(t, w, single.Thread, id)
	}
	text, err := os.ReadFile(w.path("witness"))
	require.NoError(t, err)
	seen, twice := map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		if seen[line]++; seen[line] > 1 {
			twice++
		}
	}
	require.Len(t, seen, 5*threads, "a step that no agent has made")
	require.LessOrEqual(t, twice, slots*(kills+freezes), "only what was in flight is made again")
	t.Logf("%d threads, %d steps in %s; %d kills, %d freezes, 1 server killed; %d steps were made twice",
		threads, 5*threads, took.Round(time.Second), kills, freezes, twice)
}

// disturb kills and freezes machines until all is over, and once the server.
func disturb(t *testing.T, w *team, machines []*machine, over chan struct{}) (kills, freezes int) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-over:
			return kills, freezes
		case <-tick.C:
		}
		m := machines[rand.IntN(len(machines))]
		pids := []int{m.cmd.Process.Pid} // the worker alone, or all that its machine runs
		if rand.IntN(2) == 0 {
			pids = tree(pids[0])
		}
		switch {
		case n == 5:
			w.server.Kill(t)
			w.server.Restart(t)
		case rand.IntN(3) == 0:
			freezes++
			signal(pids, syscall.SIGSTOP)
			select {
			case <-over:
			case <-time.After(time.Duration(1+rand.IntN(8)) * time.Second):
			}
			signal(pids, syscall.SIGCONT)
		case rand.IntN(2) == 0:
			kills++
			signal(pids, syscall.SIGKILL)
			_ = m.cmd.Wait()
			m.start(t)
		}
	}
}

func tail(path string) string {
	const most = 4000
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-most):])
}

// What a newcomer types.
func TestMachinesByHand(t *testing.T) {
	w := newTeam(t)
	m := &machine{team: w}
	m.start(t)
	done := ask[started](t, w, "uwf-temporal", "run", "./loop.yaml", "-p", "Look at it", "--wait")
	require.Equal(t, protocol.StatusCompleted, done.Status)
	shown := ask[protocol.ThreadShow](t, w, "uwf", "thread", "show", done.Thread, "--remote", "team")
	require.Equal(t, done.Head, shown.Head)
	listed := ask[[]worked](t, w, "uwf-temporal", "list", "--all")
	require.Len(t, listed, 1)
	require.Equal(t, "completed", listed[0].Status)
	require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, m.cmd.Wait(), tail(w.path("workers.log")))
}

// sameRun holds a thread against one of a single machine: but for where and how long it
// worked, they are the same.
func sameRun(t *testing.T, w *team, single, id string) {
	t.Helper()
	var diff struct {
		At      int
		Changes []struct{ Field string }
		Rest    []struct{ Old, New struct{ Role, Output any } }
	}
	out, _ := w.command("uwf", "thread", "diff", single, id, "--format", "json").Output() // 1: they differ
	require.NoError(t, json.Unmarshal(out, &diff), "%s", out)
	require.Equal(t, 1, diff.At, "%s", out)
	for _, c := range diff.Changes {
		require.Contains(t, []string{"directory", "durationMs"}, c.Field, "%s", out)
	}
	require.Len(t, diff.Rest, 4, "%s", out)
	for _, step := range diff.Rest {
		require.NotNil(t, step.Old.Role)
		require.Equal(t, step.Old, step.New, "%s", out)
	}
}
