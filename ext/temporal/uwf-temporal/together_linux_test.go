//go:build temporal

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

var (
	threadsFlag = flag.Int("threads", 24, "how many threads machines that die go through")
	workersFlag = flag.Int("workers", 8, "how many machines there are")
	slotsFlag   = flag.Int("slots", 1, "how many steps each of them makes at once")
	stepsFlag   = flag.Int("steps", 5, "how many steps each thread has")
)

const (
	mostTasks = 10
	starters  = 16
)

const loopWorkflow = `name: loop
description: One role that has its turn again and again.
inputs:
  task: { schema: { type: string } }
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

// The agent plays the script of its task, and records each finished step outside the engine's reach.
const witnessed = `task=${UWF_INPUTS#*:\"}
uwf-mock --mock-data "$TEAM/task-${task%%\"*}.yaml" "$@" || exit
echo "$UWF_THREAD $UWF_HEAD" >> "$TEAM/witness"
`

// scripted returns the files of the workflow, the agent and its scripts.
func scripted(tasks, steps int) map[string]string {
	files := map[string]string{
		"loop.yaml": loopWorkflow, "agent.sh": witnessed,
		"home/config.yaml": "agents:\n  scripted: { command: sh, args: [../agent.sh], retry: { attempts: 9, backoff: 1s, on: [crash] } }\ndefaultAgent: scripted\n",
	}
	for task := range tasks {
		script := "steps:\n"
		for n := range steps {
			status := "again"
			if n == steps-1 {
				status = "done"
			}
			script += fmt.Sprintf("  - value: { $status: %s, note: step %d of task %d }\n", status, n, task)
		}
		files[fmt.Sprintf("task-%d.yaml", task)] = script
	}
	return files
}

// chain is the comparable part of a thread: equal for threads that did the same.
type chain struct {
	Thread string
	Status protocol.Status
	Task   string
	Steps  []struct {
		Role, Prompt string
		Output       protocol.Hash
	}
}

// Workers, their processes, agents, Postgres and Temporal are killed and stopped at random: each thread still
// has one chain, as on a single machine.
func TestMachinesThatDie(t *testing.T) {
	threads, tasks, perThread := *threadsFlag, min(mostTasks, *threadsFlag), *stepsFlag
	postgres := temporaltest.StartPostgres(t)
	files := scripted(tasks, perThread)
	w := newTeam(t, postgres, files)
	w.write(t, map[string]string{"home/config.yaml": strings.ReplaceAll(files["home/config.yaml"], "..", w.dir)})
	var ids []string
	single := map[string]chain{}
	for task := range tasks { // on a single machine, for comparison
		words := []string{"./loop.yaml", "-p", fmt.Sprint("Task ", task), "--var", "task=" + strconv.Itoa(task)}
		alone := ask[protocol.RunOutput](t, w, "uwf", append([]string{"run"}, words...)...).Thread
		first := ask[protocol.ThreadStarted](t, w, "uwf", append([]string{"thread", "start"}, words...)...).Thread
		w.run(t, "uwf", "push", alone, first, "team")
		single[alone], ids = chain{}, append(ids, first)
		if n := threads/tasks + min(1, max(0, threads%tasks-task)) - 1; n > 0 {
			ids = append(ids, postgres.Do(t, "copies", first, strconv.Itoa(n))...)
		}
	}
	require.Len(t, ids, threads)
	require.NoError(t, os.Remove(w.path("witness")))
	w.serveWithChaos(t, postgres, ids)

	chains, of := map[string]chain{}, map[string]chain{}
	for _, line := range postgres.Do(t, "chains") {
		var c chain
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		require.Equal(t, protocol.StatusCompleted, c.Status, c.Thread)
		require.Len(t, c.Steps, perThread, c.Thread)
		if _, alone := single[c.Thread]; alone {
			of[c.Task] = c
		} else {
			chains[c.Thread] = c
		}
	}
	require.Len(t, chains, threads)
	for _, id := range ids {
		c := chains[id]
		require.Equal(t, of[c.Task].Steps, c.Steps, id)
	}
}

// disturbance counts what was done to the machines.
type disturbance struct{ kills, freezes, agents int }

func (w *team) serveWithChaos(t *testing.T, postgres *temporaltest.Postgres, ids []string) {
	dialled := w.server.Dial(t)
	t.Cleanup(dialled.Close)
	machines := make([]*machine, *workersFlag)
	for i := range machines {
		machines[i] = &machine{team: w, args: []string{"--max-concurrent-steps", strconv.Itoa(*slotsFlag)}}
		machines[i].start(t)
	}
	begun := time.Now()
	over := make(chan struct{})
	var d disturbance
	var chaos, starting sync.WaitGroup
	chaos.Go(func() { d = w.disturb(t, postgres, machines, *stepsFlag*len(ids), over) })
	running := make([]client.WorkflowRun, len(ids))
	for first := range starters {
		starting.Go(func() {
			for i := first; i < len(ids); i += starters {
				running[i] = begin(t, dialled, ids[i])
			}
		})
	}
	starting.Wait()
	t.Logf("%d workflows were started in %s", len(ids), time.Since(begun).Round(time.Second))
	for i, r := range running {
		var ended flow.Ended
		require.NoError(t, r.Get(t.Context(), &ended), "thread %s; workers: %s", ids[i], w.log())
		require.Equal(t, protocol.StatusCompleted, ended.Status)
	}
	took := time.Since(begun)
	close(over)
	chaos.Wait()
	for _, m := range machines { // they exit by themselves, with nothing in flight
		require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, m.cmd.Wait(), w.log())
	}
	w.eventually(t, "what killed workers have run does not end", func() bool { return !w.busy() })

	seen, twice := map[string]int{}, 0
	for line := range bytes.Lines(w.witness(t)) {
		if seen[string(line)]++; seen[string(line)] > 1 {
			twice++
		}
	}
	require.Len(t, seen, *stepsFlag*len(ids), "a step that no agent has made")
	require.LessOrEqual(t, twice, *slotsFlag*(d.kills+d.freezes)+d.agents, "only what was in flight is made again")
	t.Logf("%d threads, %d steps in %s, %.1f a second; %d kills and %d freezes of workers, %d of agents, 2 of Postgres, 1 of Temporal; %d steps were made twice",
		len(ids), *stepsFlag*len(ids), took.Round(time.Second), float64(*stepsFlag*len(ids))/took.Seconds(), d.kills, d.freezes, d.agents, twice)
}

// begin starts the workflow of a thread, once Temporal is available.
func begin(t testing.TB, dialled client.Client, id string) client.WorkflowRun {
	for {
		running, err := dialled.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: flow.ID("team", id), TaskQueue: flow.Queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, flow.Name, flow.Thread{Remote: "team", Thread: id, Silence: 10})
		if err == nil || t.Context().Err() != nil {
			return running
		}
		time.Sleep(time.Second)
	}
}

func (w *team) witness(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(w.path("witness"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return text
}

// disturb kills or stops a process every second until over is closed. Once each after a fifth, two and three
// fifths of the steps, it restarts Postgres, kills Temporal, and crashes Postgres.
func (w *team) disturb(t *testing.T, postgres *temporaltest.Postgres, machines []*machine, steps int, over chan struct{}) (d disturbance) {
	frozen := make([]atomic.Bool, len(machines))
	var thawing sync.WaitGroup
	defer thawing.Wait()
	accidents := []func(){
		func() { postgres.Do(t, "restart") },
		func() { w.server.Kill(t); w.server.Restart(t) },
		func() { postgres.Do(t, "crash") },
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n, happened := 0, 0; ; n++ {
		select {
		case <-over:
			require.Equal(t, len(accidents), happened, "it was over too soon")
			return d
		case <-tick.C:
		}
		made := bytes.Count(w.witness(t), []byte("\n"))
		if n%30 == 0 {
			t.Logf("%s: %d of %d steps; %d kills, %d freezes, %d agents", time.Now().UTC().Format(time.TimeOnly), made, steps, d.kills, d.freezes, d.agents)
		}
		if happened < len(accidents) && made*5 >= steps*(happened+1) {
			accidents[happened]()
			happened++
		}
		at := rand.IntN(len(machines))
		if frozen[at].Load() {
			continue
		}
		m := machines[at]
		all := tree(m.cmd.Process.Pid)
		pids := all // all processes of the machine, only the worker, or an agent
		switch rand.IntN(3) {
		case 0:
			pids = all[:1]
		case 1:
			pids = []int{all[len(all)-1]}
		}
		agent := pids[0] != all[0]
		if rand.IntN(3) == 0 {
			signal(pids, syscall.SIGSTOP)
			frozen[at].Store(true)
			d.freezes++
			thawing.Go(func() {
				select {
				case <-over:
				case <-time.After(time.Duration(1+rand.IntN(8)) * time.Second):
				}
				signal(pids, syscall.SIGCONT)
				frozen[at].Store(false)
			})
			continue
		}
		signal(pids, syscall.SIGKILL)
		if agent {
			d.agents++
			continue
		}
		d.kills++
		_ = m.cmd.Wait()
		m.start(t)
	}
}

// tree returns a process with its descendants.
func tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, list := range lists { // one list per thread of the process
			text, _ := os.ReadFile(list)
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil {
					all = append(all, child)
				}
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

// busy reports whether a process still runs in the directory of the slots.
func (w *team) busy() bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, dir := range dirs {
		if at, err := os.Readlink(dir); err == nil && strings.HasPrefix(at, w.slots) {
			return true
		}
	}
	return false
}
