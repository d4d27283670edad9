//go:build temporal

package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/united-workforce/uwf/ext/temporal/temporaltest"
	"github.com/united-workforce/uwf/protocol"
)

// chains is a stepper for threads in memory. Each has five steps; its head is the number of steps.
type chains struct {
	mu    sync.Mutex
	heads map[string]int
	made  atomic.Int64
	ask   map[string]bool // threads that need a person
	until int64           // until when the thread "parked" is parked
}

func (c *chains) Step(_ context.Context, r Request, _ string) (Outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.heads[r.Thread]
	if c.ask[r.Thread] {
		return Outcome{Head: hash(at), Status: protocol.StatusSuspended}, nil
	}
	if left := time.Until(time.UnixMilli(c.until)); r.Thread == "parked" && left > 0 {
		return Outcome{Head: hash(at), Status: protocol.StatusRateLimited, Until: c.until}, nil
	}
	if r.Thread == "parent" && (c.heads["a"] < 5 || c.heads["b"] < 5) {
		return Outcome{Head: hash(at), Status: protocol.StatusWaitingForChildren, Children: []Child{{"a", protocol.StatusIdle}, {"b", protocol.StatusIdle}}}, nil
	}
	if r.Expect != "" && r.Expect != hash(at) {
		return Outcome{Status: protocol.StatusIdle}, nil
	}
	if at < 5 {
		c.heads[r.Thread]++
		c.made.Add(1)
	}
	out := Outcome{Head: hash(c.heads[r.Thread]), Status: protocol.StatusIdle, Made: true}
	if c.heads[r.Thread] == 5 {
		out.Status = protocol.StatusCompleted
	}
	return out, nil
}

// serve runs a worker until the end of the test.
func serve(t *testing.T, dialled client.Client, s Stepper) {
	t.Helper()
	w := worker.New(dialled, Queue, worker.Options{})
	Register(w, Steps{Stepper: s})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

func begin(t *testing.T, dialled client.Client, thread Thread) client.WorkflowRun {
	t.Helper()
	running, err := dialled.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: ID(thread.Remote, thread.Thread), TaskQueue: Queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, Name, thread)
	require.NoError(t, err)
	return running
}

var record = flag.String("record", "", "write the histories of the test's workflows into testdata, with this `PREFIX`")

func TestOnAServer(t *testing.T) {
	server := temporaltest.Start(t)
	dialled := server.Dial(t)
	t.Cleanup(dialled.Close)
	c := &chains{heads: map[string]int{}, ask: map[string]bool{"asks": true, "stopped": true}}
	serve(t, dialled, c)

	t.Run("threads", func(t *testing.T) {
		const threads = 100
		var running []client.WorkflowRun
		for i := range threads {
			running = append(running, begin(t, dialled, Thread{Remote: "team", Thread: fmt.Sprint("T", i)}))
		}
		again := begin(t, dialled, Thread{Remote: "team", Thread: "T0"}) // one at a time
		for _, r := range append(running, again) {
			var ended Ended
			require.NoError(t, r.Get(t.Context(), &ended))
			require.Equal(t, protocol.StatusCompleted, ended.Status)
		}
		require.EqualValues(t, threads*5, c.made.Load())
	})
	t.Run("a person's answer outlives the server", func(t *testing.T) {
		running := begin(t, dialled, Thread{Remote: "team", Thread: "asks"})
		server.Kill(t)
		server.Restart(t)
		c.mu.Lock()
		c.ask["asks"] = false
		c.mu.Unlock()
		require.Eventually(t, func() bool {
			return dialled.SignalWorkflow(t.Context(), running.GetID(), "", Changed, nil) == nil
		}, time.Minute, 100*time.Millisecond)
		var ended Ended
		require.NoError(t, running.Get(t.Context(), &ended))
		require.Equal(t, 5, ended.Steps)
	})
	t.Run("stopped", func(t *testing.T) {
		running := begin(t, dialled, Thread{Remote: "team", Thread: "stopped"})
		require.NoError(t, dialled.CancelWorkflow(t.Context(), running.GetID(), ""))
		require.True(t, temporal.IsCanceledError(errors.Unwrap(running.Get(t.Context(), nil))))
	})
	t.Run("children, and a time", func(t *testing.T) {
		c.mu.Lock()
		c.until = time.Now().Add(time.Second).UnixMilli()
		c.mu.Unlock()
		for _, thread := range []string{"parent", "parked"} {
			require.NoError(t, begin(t, dialled, Thread{Remote: "team", Thread: thread}).Get(t.Context(), nil))
		}
	})
	t.Run("replayed", func(t *testing.T) {
		for _, thread := range []string{"T0", "asks", "stopped", "parent", "a", "parked"} {
			require.NoError(t, replayer(Run).ReplayWorkflowExecution(t.Context(), dialled.WorkflowService(), nil, client.DefaultNamespace, workflow.Execution{ID: ID("team", thread)}))
			if *record != "" {
				write(t, dialled, thread, filepath.Join("testdata", *record+"-"+thread+".json"))
			}
		}
	})
}

// write writes the history of a thread's workflow to a file.
func write(t *testing.T, dialled client.Client, thread, file string) {
	t.Helper()
	var all history.History
	events := dialled.GetWorkflowHistory(t.Context(), ID("team", thread), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		all.Events = append(all.Events, event)
	}
	text, err := protojson.Marshal(&all)
	require.NoError(t, err)
	var compact bytes.Buffer // protojson adds spaces at random
	require.NoError(t, json.Compact(&compact, text))
	host, err := os.Hostname()
	require.NoError(t, err)
	text = bytes.ReplaceAll(compact.Bytes(), []byte(`"`+host+":"), []byte(`"host:`)) // in names of sticky queues
	require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
}
