//go:build temporal

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/ext/temporal/slot"
	"github.com/united-workforce/uwf/ext/temporal/temporaltest"
	"github.com/united-workforce/uwf/protocol"
)

const (
	benchThreads = 40
	benchSteps   = 5
	benchSlots   = 4
)

// counting is a stepper that runs nothing: the head of a thread is its number of steps.
type counting struct{}

func (counting) Step(_ context.Context, r flow.Request, _ string) (flow.Outcome, error) {
	n, _ := strconv.Atoi(string(r.Expect)) // fails at the start, which is 0
	out := flow.Outcome{Head: protocol.Hash(strconv.Itoa(n + 1)), Status: protocol.StatusIdle, Made: true}
	if n+1 == benchSteps {
		out.Status = protocol.StatusCompleted
	}
	return out, nil
}

// BenchmarkMachines measures the cost of a step, with the same servers for all and the data in Postgres: an
// empty activity of Temporal; the workflow of threads with an empty activity; whole steps of a worker, with
// uwf, helper and agent; and the same steps without Temporal.
func BenchmarkMachines(b *testing.B) {
	postgres := temporaltest.StartPostgres(b)
	w := newTeam(b, postgres, scripted(1, benchSteps))
	w.write(b, map[string]string{"home/config.yaml": strings.ReplaceAll(string(must(os.ReadFile(w.path("home/config.yaml")))), "..", w.dir)})
	first := ask[protocol.ThreadStarted](b, w, "uwf", "thread", "start", "./loop.yaml", "-p", "Task", "--var", "task=0").Thread
	w.run(b, "uwf", "push", first, "team")
	dialled := w.server.Dial(b)
	defer dialled.Close()
	idle := nothing(b, dialled)
	defer idle.Stop()
	w.serve(b, "--max-concurrent-steps", strconv.Itoa(benchSlots))
	pool, err := slot.Open(b.Context(), slot.Config{
		Exe: filepath.Join(w.bin, "uwf-temporal"), Dir: filepath.Join(w.slots, "direct"), Home: w.path("home"), Slots: benchSlots, Environ: w.environ, Lease: 5 * time.Second, Now: time.Now,
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, pool.Close()) }()

	run := func(id, queue, name string, arg ...any) error {
		r, err := dialled.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, name, arg...)
		if err != nil {
			return err
		}
		return r.Get(b.Context(), nil)
	}
	kinds := []struct {
		name string
		do   func(id string) error // runs all steps of a thread
	}{
		{"empty", func(id string) error { return run("empty/"+id, benchQueue, "empty") }},
		{"workflow", func(id string) error {
			return run("workflow/"+id, benchQueue, flow.Name, flow.Thread{Remote: "team", Thread: id})
		}},
		{"whole", func(id string) error {
			return run(flow.ID("team", id), flow.Queue, flow.Name, flow.Thread{Remote: "team", Thread: id})
		}},
		{"direct", func(id string) (err error) {
			for at := (flow.Outcome{}); err == nil && at.Status != protocol.StatusCompleted; {
				at, err = pool.Step(b.Context(), flow.Request{Remote: "team", Thread: id, Expect: at.Head}, flow.Queue)
			}
			return err
		}},
	}
	took, worked := make([]time.Duration, len(kinds)), make([]time.Duration, len(kinds))
	rounds := 0
	for b.Loop() {
		rounds++
		for i, kind := range kinds {
			ids := postgres.Do(b, "copies", first, strconv.Itoa(benchThreads))
			began, had := time.Now(), processor(b)
			over := make(chan error, len(ids))
			for _, id := range ids {
				go func() { over <- kind.do(id) }()
			}
			for range ids {
				require.NoError(b, <-over)
			}
			took[i] += time.Since(began)
			worked[i] += processor(b) - had
		}
	}
	b.ReportMetric(0, "ns/op")
	steps := float64(rounds * benchThreads * benchSteps)
	for i, kind := range kinds {
		b.ReportMetric(steps/took[i].Seconds(), kind.name+"/s")
		b.ReportMetric(worked[i].Seconds()*1000/steps, kind.name+"-cpu-ms")
	}
}

const benchQueue = "nothing"

// nothing returns a worker whose activities do nothing.
func nothing(b *testing.B, dialled client.Client) worker.Worker {
	w := worker.New(dialled, benchQueue, worker.Options{})
	flow.Register(w, flow.Steps{Stepper: counting{}})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for range benchSteps {
			if err := workflow.ExecuteActivity(ctx, "nothing").Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}, workflow.RegisterOptions{Name: "empty"})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "nothing"})
	require.NoError(b, w.Start())
	return w
}

// processor returns the CPU time of this process and its descendants.
func processor(b *testing.B) (total time.Duration) {
	b.Helper()
	for _, pid := range tree(os.Getpid()) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended, and is counted by its parent
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
		const first, last, tick = 12, 15, 10 * time.Millisecond // its own time, and its ended children's
		for _, field := range fields[first : last+1] {
			n, err := strconv.ParseInt(field, 10, 64)
			require.NoError(b, err)
			total += time.Duration(n) * tick
		}
	}
	return total
}
