//go:build temporal

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
)

// TestWorkers runs workers on two queues. Programs of the second queue's machine aren't on the PATH of the
// first.
func TestWorkers(t *testing.T) {
	files := scripted(1, 5)
	files["panel.yaml"], files["approve.yaml"], files["train.yaml"], files["parked.yaml"], files["refused.yaml"] = panelWorkflow, approveWorkflow, trainWorkflow, parkedWorkflow, refusedWorkflow
	files["gpu/train"] = "#!/bin/sh\necho trained\n"
	files["limited.sh"] = limited
	w := newTeam(t, nil, files)
	require.NoError(t, os.Chmod(w.path("gpu/train"), 0o700))
	w.write(t, map[string]string{
		"home/config.yaml": fmt.Sprintf(`agents:
  scripted: { command: sh, args: [%[1]s/agent.sh] }
  limited: { command: sh, args: [%[1]s/limited.sh], onRateLimit: wait, retry: { attempts: 1 } }
  broken: { command: "false", retry: { attempts: 1 } }
defaultAgent: scripted
agentOverrides: { parked: { worker: limited }, refused: { worker: broken } }
`, w.dir),
		"home/temporal.yaml": strings.ReplaceAll(string(must(os.ReadFile(w.path("home/temporal.yaml")))), "heartbeatTimeout: 10s\nlease: 10s\n", "") + "queues: { train: { trainer: gpu } }\n",
	})
	w.serve(t)

	t.Run("what a newcomer types", func(t *testing.T) {
		done := w.finish(t, "./loop.yaml", "--var", "task=0")
		shown := ask[protocol.ThreadShow](t, w, "uwf", "thread", "show", done.Thread, "--remote", "team")
		require.Equal(t, done.Head, shown.Head)
		listed := ask[[]worked](t, w, "uwf-temporal", "list", "--all")
		require.Len(t, listed, 1)
		require.Equal(t, "completed", listed[0].Status)
	})
	t.Run("children, one of which asks a person", func(t *testing.T) {
		parent := w.begin(t, "./panel.yaml")
		var shown protocol.ThreadShow
		w.eventually(t, "the last child that is due asks", func() bool {
			shown = ask[protocol.ThreadShow](t, w, "uwf", "thread", "show", parent, "--remote", "team")
			return len(shown.Children) == 3 && shown.Children[0].Status == protocol.StatusSuspended &&
				shown.Children[1].Status == protocol.StatusCompleted && shown.Children[2].Status == protocol.StatusCompleted
		})
		w.answer(t, shown.Children[0].Thread)
		w.ended(t, parent, "completed")
		for _, child := range shown.Children {
			require.NotEmpty(t, w.events(t, child.Thread), "each child is a workflow of its own")
		}
		require.Contains(t, w.events(t, parent), enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED)
		require.Contains(t, w.events(t, parent), enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, "the answer wakes it")
	})
	t.Run("a person", func(t *testing.T) {
		thread := w.begin(t, "./approve.yaml")
		w.eventually(t, "it asks", func() bool {
			waiting := ask[[]protocol.ThreadItem](t, w, "uwf", "remote", "list", "team", "--waiting")
			return slices.ContainsFunc(waiting, func(i protocol.ThreadItem) bool { return i.Thread == thread })
		})
		w.answer(t, thread)
		w.ended(t, thread, "completed")
		require.Contains(t, w.events(t, thread), enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, "the answer wakes it")
	})
	t.Run("parked until a time", func(t *testing.T) {
		done := w.finish(t, "./parked.yaml", "--var", "task=0")
		require.Contains(t, w.events(t, done.Thread), enums.EVENT_TYPE_TIMER_FIRED)
	})
	t.Run("a role that only some machines can play", func(t *testing.T) {
		thread := w.begin(t, "./train.yaml")
		w.eventually(t, "nobody has its queue", func() bool {
			listed := ask[[]worked](t, w, "uwf-temporal", "list")
			return slices.ContainsFunc(listed, func(l worked) bool { return l.Thread == thread && l.Status == "starting" && l.Tries == 0 })
		})
		gpu := *w
		gpu.environ = append(slices.Clone(w.environ), "PATH="+w.path("gpu")+":"+w.onPath+":"+os.Getenv("PATH"))
		gpu.serve(t, "--queue", "gpu")
		w.ended(t, thread, "completed")
		shown := ask[protocol.ThreadShow](t, w, "uwf", "thread", "show", thread, "--remote", "team")
		require.Equal(t, 3, shown.Totals.Steps, "with what the machine of the role has")
	})
	t.Run("what no other try would change", func(t *testing.T) {
		_, err := w.try("uwf-temporal", "run", "./refused.yaml", "-p", "Go", "--wait", "--format", "json")
		require.ErrorContains(t, err, "exit status")
		require.ErrorContains(t, err, "uwf-temporal run --thread")
	})
	t.Run("a machine that could make no step", func(t *testing.T) {
		broken := *w
		broken.environ = append(slices.Clone(w.environ), "UWF_HOME="+w.path("other"))
		w.write(t, map[string]string{"other/config.yaml": "agents: 7\n"})
		_, err := broken.try("uwf-temporal", "worker", "--remote", "team")
		require.ErrorContains(t, err, "config.yaml")
		w.write(t, map[string]string{"other/config.yaml": ""})
		_, err = broken.try("uwf-temporal", "worker", "--remote", "team")
		require.ErrorContains(t, err, "uwf remote add --trust team")
	})
	t.Run("homes of slots are there for a while only", func(t *testing.T) {
		logs, err := filepath.Glob(filepath.Join(w.slots, "worker-*", "nodes-*", "log", "*.seg"))
		require.NoError(t, err)
		require.NotEmpty(t, logs)
		var homes []string
		for _, log := range logs {
			homes = append(homes, regexp.MustCompile(`/slot-[\d-]+/home\n\w*`).FindAllString(string(must(os.ReadFile(log))), -1)...)
		}
		require.NotEmpty(t, homes)
		for _, home := range homes {
			require.Regexp(t, `\nephemeral$`, home)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// begin starts a thread and its workflow.
func (w *team) begin(t *testing.T, workflow string, more ...string) string {
	t.Helper()
	return ask[started](t, w, "uwf-temporal", append([]string{"run", workflow, "-p", "Look at it"}, more...)...).Thread
}

// finish starts a thread and its workflow, and waits for the end.
func (w *team) finish(t *testing.T, workflow string, more ...string) started {
	t.Helper()
	done := ask[started](t, w, "uwf-temporal", append([]string{"run", workflow, "-p", "Look at it", "--wait"}, more...)...)
	require.Equal(t, protocol.StatusCompleted, done.Status)
	return done
}

// ended waits until a workflow has ended with that status.
func (w *team) ended(t *testing.T, thread, status string) {
	t.Helper()
	w.eventually(t, thread+" does not end", func() bool {
		listed := ask[[]worked](t, w, "uwf-temporal", "list", "--all")
		return slices.ContainsFunc(listed, func(l worked) bool { return l.Thread == thread && l.Status == status })
	})
}

// answer answers as a person who has only uwf, and a home that knows the remote.
func (w *team) answer(t *testing.T, thread string) {
	t.Helper()
	person := *w
	person.environ = append(slices.Clone(w.environ), "UWF_HOME="+filepath.Join(t.TempDir(), "person"))
	person.run(t, "uwf", "remote", "add", "--trust", "team", w.path("team"))
	person.run(t, "uwf", "thread", "answer", thread, "--remote", "team", "--cwd", w.dir, "--set", "$status=approved", "--set", "comment=Well done")
}

// events returns the event types of a thread's workflow.
func (w *team) events(t *testing.T, thread string) (types []enums.EventType) {
	t.Helper()
	dialled := w.server.Dial(t)
	defer dialled.Close()
	history := dialled.GetWorkflowHistory(t.Context(), flow.ID("team", thread), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		types = append(types, event.GetEventType())
	}
	return types
}

const panelWorkflow = `name: panel
description: Three look at it.
roles:
  look: { description: Looks., run: [echo, "{{{$prompt}}}"] }
  panel:
    description: All look.
    all:
      asks: { workflow: ./approve.yaml, prompt: "look" }
      docs: { role: look }
      security: { role: look }
graph:
  $START: { _: { role: panel, prompt: "{{{$prompt}}}" } }
  panel: { done: $END, failed: { role: look, prompt: "Failed." } }
  look: { passed: $END, failed: $END }
`

const approveWorkflow = `name: approve
description: Somebody approves it.
roles:
  approve:
    description: Approves.
    person: true
    frontmatter: { type: object, properties: { $status: { enum: [approved, rejected] }, comment: { type: string } }, required: [$status, comment] }
graph:
  $START: { _: { role: approve, prompt: "Publish it? {{{$prompt}}}" } }
  approve: { approved: $END, rejected: $END }
`

const trainWorkflow = `name: train
description: A program that one machine has.
roles:
  before: { description: Runs anywhere., run: ["true"] }
  trainer: { description: Trains., run: [train] }
  after: { description: Runs anywhere., run: ["true"] }
graph:
  $START: { _: { role: before, prompt: "Begin." } }
  before: { passed: { role: trainer, prompt: "Train." }, failed: $END }
  trainer: { passed: { role: after, prompt: "End." }, failed: $END }
  after: { passed: $END, failed: $END }
`

const parkedWorkflow = `name: parked
description: A provider that grants no more for a while.
inputs:
  task: { schema: { type: string } }
roles:
  worker:
    description: Works.
    goal: You work.
    frontmatter: { type: object, properties: { $status: { enum: [again, done] }, note: { type: string } }, required: [$status, note] }
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker: { again: $END, done: $END }
`

// limited is an agent whose provider refuses once, for a moment.
const limited = `if test -e "$TEAM/limited"; then . "$TEAM/agent.sh"; exit; fi
: > "$TEAM/limited"
echo "{\"error\":\"no more until then\",\"kind\":\"rate-limit\",\"retryAtMs\":$(( ($(date +%s) + 20) * 1000 )),\"usage\":{}}"
exit 1
`

const refusedWorkflow = `name: refused
description: Its agent fails.
roles:
  worker: { description: Works., goal: You work., frontmatter: { type: object, properties: { note: { type: string } } } }
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker: { _: $END }
`
