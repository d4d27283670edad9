//go:build unix

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
)

// After any failure of an agent there is a clear error, the head hasn't moved, and the thread can be stepped
// again.
func TestAgentsThatFail(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"exits with a failure":                 "!exit:3",
		"reports an error and fails":           "!error",
		"reports an error and exits 0":         "!quiet-error",
		"fails after a good result":            "!result-then-fail:ready",
		"prints nothing":                       "!print:",
		"prints prose":                         "!print:all done",
		"prints no hash":                       `!print:{"stepHash":"x"}`,
		"prints a hash of nothing":             "!print:0000000000000",
		"step of another thread":               "!lie:start",
		"step that follows another node":       "!lie:prev",
		"wrong index":                          "!lie:index",
		"another role":                         "!lie:role",
		"a failure that it makes itself":       "!lie:error",
		"wrong visits":                         "!lie:visits",
		"wrong limitBase":                      "!lie:limitBase",
		"no agent name":                        "!lie:agent",
		"made in another directory":            "!lie:cwd",
		"made in another directory of its own": "!lie:sub",
		"claims a different prompt":            "!lie:edgePrompt",
		"begun before its thread":              "!lie:before",
		"ended in the future":                  "!lie:future",
		"ended before it began":                "!lie:backwards",
		"ended at a negative time":             "!lie:never",
		"told what is no text":                 "!lie:prompt",
		"output of another type":               "!lie:type",
		"output that breaks its schema":        "!lie:schema",
		"output that only the library refuses": "!lie:rare",
		"output that is not there":             "!lie:missing-output",
		"detail that is not there":             "!lie:missing-detail",
		"detail that is no detail":             "!lie:detail",
		"turn that is not there":               "!lie:missing-turn",
	}
	for name, agent := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, agent)
			id := w.start()
			head := w.head(id)
			out, err := w.Step(context.Background(), id, StepOptions{})
			e := requireCode(t, err, protocol.CodeAgent)
			require.Contains(t, strings.Join(hints.All("", e), "\n"), w.Reader.Dirs.Run(id))
			require.Equal(t, strings.HasPrefix(name, "prints") && name != "prints a hash of nothing", strings.Contains(hints.All("", e)[0], "uwf-exec -- "))
			require.Equal(t, head, w.head(id))
			require.Equal(t, protocol.StatusError, out.Status)
			require.Equal(t, "planner", string(out.CurrentRole))
			require.Equal(t, e.Message, out.Error.Message)
			require.Equal(t, out, w.show(id), "the failure stays visible")
			require.False(t, out.Pending)

			w.plays("ready")
			next := w.mustStep(id, StepOptions{})
			require.False(t, next.Adopted, "a failed result is never adopted")
			require.Equal(t, "worker", string(next.CurrentRole))
			require.Nil(t, w.show(id).Error)
		})
	}
}

func TestRejectionIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!lie:role")
	id := w.start()
	out, err := w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	r := w.Reader.RunDir(id).Read()
	require.Equal(t, rundir.Rejected, r.Status)
	prosetest.Text(t, r.Reason)
	require.True(t, r.StepHash.Valid())
	require.Equal(t, r.StepHash, protocol.Hash(out.Error.StepHash))

	// It isn't accepted from the same agent with the same task either.
	_, err = w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.Len(t, w.runs(), 2)
}

// A result is refused if it is a valid step of another thread.
func TestForeignStepIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	other, err := w.Start(context.Background(), protocol.Start{Workflow: w.workflow, Prompt: "another task", Cwd: w.dir}, StartOptions{})
	require.NoError(t, err)
	foreign := w.mustStep(other, StepOptions{}).Head

	w.plays("!print:" + strings.ToLower(string(foreign)))
	id := w.start()
	head := w.head(id)
	_, err = w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	_, err = w.Step(context.Background(), other, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	w.plays("!print:" + string(w.workflow))
	_, err = w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent, string(w.workflow))
	require.Equal(t, head, w.head(id))
	require.Equal(t, foreign, w.head(other))
}

// A result is found after 50 MB of output.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!noise:50")
	w.Events, w.Turns = (&recorder{}).add, true // read the output while it is written
	id := w.start()
	begin := time.Now()
	require.Equal(t, "worker", string(w.mustStep(id, StepOptions{}).CurrentRole))
	require.Less(t, time.Since(begin), time.Minute)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"agent that obeys": "", "agent that does not": "stubborn"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "!hang:"+how)
			w.Grace = 100 * time.Millisecond
			id := w.start()
			begin := time.Now()
			out, err := w.Step(context.Background(), id, StepOptions{Timeout: 300 * time.Millisecond})
			requireCode(t, err, protocol.CodeTimeout)
			require.Less(t, time.Since(begin), time.Minute)
			require.Equal(t, protocol.StatusError, out.Status)
			require.Equal(t, protocol.CodeTimeout, out.Error.Code)
			// Between fork and exec, an agent of another test also holds this lock.
			w.eventually("the agent is gone", func() bool { return !w.Reader.RunDir(id).Alive(w.Reader.RunDir(id).Read()) })
		})
	}
}

func TestTimeoutOfTheConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!hang:")
	w.config.Timeout = "1h"
	own := w.config.Agents["fake"]
	own.Timeout = "200ms"
	w.config.Agents["fake"] = own
	_, err := w.Step(context.Background(), w.start(), StepOptions{})
	requireCode(t, err, protocol.CodeTimeout)
}
