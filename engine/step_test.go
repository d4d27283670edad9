//go:build unix

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestStepsLeadToTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again,ready,done")
	id := w.start()
	start := w.head(id)
	shown := w.show(id)
	require.Equal(t, protocol.StatusIdle, shown.Status)
	require.Equal(t, "planner", string(shown.CurrentRole))
	require.Equal(t, "test", shown.WorkflowName)

	first := w.mustStep(id, StepOptions{})
	require.Equal(t, "planner", string(first.Role))
	require.Equal(t, "planner", string(first.CurrentRole))
	require.Equal(t, first.Head, protocol.Hash(first.StepHash))
	require.Equal(t, "uwf-fake", first.Agent)
	require.EqualValues(t, 5, first.Usage.OutputTokens)
	require.False(t, first.Adopted)
	require.Nil(t, first.Error)

	second := w.mustStep(id, StepOptions{})
	require.Equal(t, "worker", string(second.CurrentRole))
	third := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusCompleted, third.Status)
	require.True(t, third.Done)
	require.Empty(t, third.CurrentRole)

	s3, s2 := w.readStep(third.Head), w.readStep(second.Head)
	require.Equal(t, second.Head, *s3.Prev)
	require.Equal(t, start, s3.Start)
	require.Equal(t, map[string]int{"planner": 2, "worker": 1}, s3.Visits)
	require.Equal(t, "Do the ready thing", s3.EdgePrompt)
	require.Equal(t, "Once more.", s2.EdgePrompt)
	require.Equal(t, "Plan: the task", w.readStep(first.Head).EdgePrompt)

	_, err := w.Reader.Heads.Head(context.Background(), id)
	require.ErrorIs(t, err, heads.ErrNoThread)
	shown = w.show(id)
	require.Equal(t, protocol.StatusCompleted, shown.Status)
	require.True(t, shown.Done)
	require.Equal(t, third.Head, shown.Head)

	out, err := w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeFailed)
	require.Contains(t, hints.All("", e)[0], "uwf thread resume "+id)
	require.Equal(t, protocol.StatusCompleted, out.Status, "the output says where the thread stands")
	require.NoFileExists(t, w.lockFile(id), "an ended thread keeps no lock file")
}

func TestAgentWarningsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!warn:ready,!warn:error")
	var warnings []string
	w.onWarning(func(text string) { warnings = append(warnings, text) })
	id := w.start()
	w.mustStep(id, StepOptions{})
	require.Equal(t, []string{"no wall"}, warnings)
	_, err := w.Step(t.Context(), id, StepOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"no wall", "no wall"}, warnings, "an error of its own does not hide it")
}

func TestAgentContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!show")
	w.config.Agents["fake"] = protocol.Agent{
		Command: w.config.Agents["fake"].Command, Args: []string{"fake-agent", "!show", "own arg"},
		Env: map[string]string{"EXTRA": "from the config", protocol.EnvHome: "/ours/counts"},
	}
	id := w.start()
	_, err := w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeAgent, "agent")
	require.Contains(t, e.Message, "args=own arg|"+id+"|planner|--prompt-ref|")
	for _, want := range []string{"cwd=" + w.dir, "prompt=Plan: the task", "agent=fake", "extra=from the config", "thread=" + id, "home=" + w.Reader.Dirs.Home} {
		require.Contains(t, e.Message, want)
	}

	positional := w.config.Agents["fake"]
	positional.Protocol = "positional"
	w.config.Agents["fake"] = positional
	_, err = w.Step(context.Background(), id, StepOptions{})
	require.ErrorContains(t, err, "args=own arg|"+id+"|planner\n")
	require.ErrorContains(t, err, "prompt=Plan: the task", "the environment says it")

	named := w.config.Agents["fake"]
	named.Protocol = "named"
	w.config.Agents["fake"] = named
	_, err = w.Step(context.Background(), id, StepOptions{})
	require.ErrorContains(t, err, "args=own arg|--thread|"+id+"|--role|planner|--prompt|Plan: the task\n")
}

func TestWhoPlaysTheRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	exe := w.config.Agents["fake"].Command
	w.config.Agents["other"] = protocol.Agent{Command: exe, Args: []string{"fake-agent", "again"}}
	w.config.AgentOverrides = map[string]map[string]string{"test": {"planner": "other"}}
	id := w.start()
	require.Equal(t, "planner", string(w.mustStep(id, StepOptions{}).CurrentRole), "the override goes before the default")
	require.Equal(t, "worker", string(w.mustStep(id, StepOptions{Agent: "fake"}).CurrentRole), "--agent goes before the override")
	out := w.mustStep(id, StepOptions{Agent: "'" + exe + "' fake-agent \"retry\""})
	require.Equal(t, "planner", string(out.CurrentRole), "--agent may be a command line, quoted as for a shell")

	w.config = protocol.Config{}
	link := filepath.Join(w.Reader.Env.Dir, "my agent")
	require.NoError(t, os.Symlink(exe, link))
	out = w.mustStep(id, StepOptions{Agent: `"./my agent" fake-agent again`})
	require.Equal(t, "planner", string(out.CurrentRole), "it works without a config, relative to the caller")
}

// Variables can hold keys: they reach the agent, but aren't written to files.
func TestVariablesOfAnAgentAreNotRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!show")
	w.Reader.Env = w.Reader.Env.With("SECRET", "hunter2")
	fake := w.config.Agents["fake"]
	fake.Args = append(fake.Args, "--key=${SECRET}")
	w.config.Agents["fake"] = fake
	id := w.start()
	_, err := w.Step(context.Background(), id, StepOptions{})
	require.ErrorContains(t, err, "args=--key=hunter2|", "the agent itself says so")
	require.Equal(t, "--key=${SECRET}", w.Reader.RunDir(id).Read().Command[3])
}

func TestAgentThatCannotBeChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	id := w.start()
	fake := w.config.Agents["fake"]
	tests := map[string]struct {
		config protocol.Config
		agent  string
		code   protocol.Code
		hint   string
	}{
		"no config":        {protocol.Config{}, "", protocol.CodeInvalid, "--agent"},
		"unknown default":  {protocol.Config{DefaultAgent: "fak", Agents: map[string]protocol.Agent{"fake": fake}}, "", protocol.CodeInvalid, `"fake"`},
		"unknown override": {protocol.Config{AgentOverrides: map[string]map[string]string{"test": {"planner": "x"}}}, "", protocol.CodeInvalid, ""},
		"no command":       {protocol.Config{DefaultAgent: "a", Agents: map[string]protocol.Agent{"a": {}}}, "", protocol.CodeInvalid, ""},
		"bad protocol":     {protocol.Config{DefaultAgent: "a", Agents: map[string]protocol.Agent{"a": {Command: "x", Protocol: "rpc"}}}, "", protocol.CodeInvalid, ""},
		"bad timeout":      {protocol.Config{DefaultAgent: "fake", Timeout: "soon", Agents: map[string]protocol.Agent{"fake": fake}}, "", protocol.CodeInvalid, ""},
		"not on PATH":      {protocol.Config{DefaultAgent: "a", Agents: map[string]protocol.Agent{"a": {Command: "uwf-none-such"}}}, "", protocol.CodeAgent, "agents.a.command"},
		"--agent: unknown": {protocol.Config{Agents: map[string]protocol.Agent{"fake": fake}}, "fakes", protocol.CodeNotFound, "--agent fake?"},
		"--agent: a shell": {protocol.Config{}, "a | b", protocol.CodeUsage, ""},
		"--agent: quotes":  {protocol.Config{}, "a 'b", protocol.CodeUsage, ""},
		"--agent: blank":   {protocol.Config{}, "  ", protocol.CodeUsage, ""},
		"--agent: no file": {protocol.Config{}, "/no/such/agent x", protocol.CodeNotFound, ""},
	}
	head := w.head(id)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w.config = test.config
			_, err := w.Step(context.Background(), id, StepOptions{Agent: test.agent})
			e := requireCode(t, err, test.code)
			require.Contains(t, strings.Join(hints.All("", e), "\n"), test.hint)
			require.Equal(t, head, w.head(id))
		})
	}
	require.Empty(t, w.runs())
}

func TestWhereTheAgentWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "beside,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeFailed, filepath.Join(w.dir, "sub"))
	require.Equal(t, protocol.StatusError, w.show(id).Status)
	prosetest.Text(t, w.show(id).Error.Message, "whoever asks later is told")

	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "sub"), 0o755))
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, filepath.Join(w.dir, "sub"), w.readStep(out.Head).Cwd, "a relative location begins at the thread's directory")
}

func TestProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!turns,!exit:3")
	p := &recorder{}
	w.Events, w.Turns = p.add, true
	id := w.start()
	w.mustStep(id, StepOptions{})
	_, err := w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.Equal(t, []string{
		"start 1 planner by fake adopted=false", "turn first", "turn second", "end idle <nil>",
		"start 2 worker by fake adopted=false",
	}, p.events[:5])
	require.Contains(t, p.events[5], "exit status 3")
}

// A step whose status has no edge is kept, and the error says what to do.
func TestStepWithoutAWayOnIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,lost")
	id := w.start()
	before := w.mustStep(id, StepOptions{}).Head
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusError, out.Status)
	require.Equal(t, out.Head, protocol.Hash(out.StepHash))
	require.Contains(t, out.Error.Message, `"lost"`)
	require.Contains(t, out.Error.Hint, "uwf thread fork "+string(before))

	out, err := w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeInvalid, `"lost"`)
	require.Contains(t, hints.All("", e)[0], "uwf thread retry "+id)
	require.Contains(t, hints.All("", e)[1], "uwf thread fork "+string(before))
	require.Equal(t, protocol.StatusError, out.Status)
	require.Len(t, w.runs(), 2, "stepping again runs no agent")

	w.plays("ready,done")
	fork, err := w.Fork(context.Background(), before, ForkOptions{})
	require.NoError(t, err)
	require.True(t, w.mustStep(fork, StepOptions{}).Done)
	poked, err := w.Poke(context.Background(), id, "another word", StepOptions{})
	require.NoError(t, err)
	require.True(t, poked.Done, "a thread that is stuck can be poked out of it")
}

func TestUnknownThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	ctx := context.Background()
	for _, id := range []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "../../etc/passwd", "", "01arz3ndektsv4rrffq69g5fav"} {
		_, err := w.Step(ctx, id, StepOptions{})
		requireCode(t, err, protocol.CodeNotFound)
		_, err = w.Resume(ctx, id, "", StepOptions{})
		requireCode(t, err, protocol.CodeNotFound)
		_, err = w.Reader.Show(ctx, id)
		requireCode(t, err, protocol.CodeNotFound)
		_, err = w.Stop(ctx, id)
		requireCode(t, err, protocol.CodeNotFound)
		requireCode(t, w.Kill(ctx, id), protocol.CodeNotFound)
		_, err = w.Reader.Wait(ctx, id)
		requireCode(t, err, protocol.CodeNotFound)
	}
	locks, err := filepath.Glob(filepath.Join(w.Reader.Dirs.Locks(), "0*"))
	require.NoError(t, err)
	require.Empty(t, locks, "a thread that is not there leaves no lock file")
}

func TestStartAndForkCheckTheirNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	ctx := context.Background()
	_, err := w.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "p", Cwd: "relative"}, StartOptions{})
	requireCode(t, err, protocol.CodeUsage, "absolute")
	_, err = w.Start(ctx, protocol.Start{Workflow: "0000000000000", Prompt: "p", Cwd: w.dir}, StartOptions{})
	requireCode(t, err, protocol.CodeNotFound, "0000000000000")
	id := w.start()
	_, err = w.Start(ctx, protocol.Start{Workflow: w.head(id), Prompt: "p", Cwd: w.dir}, StartOptions{})
	requireCode(t, err, protocol.CodeInvalid)

	_, err = w.Fork(ctx, "0000000000000", ForkOptions{})
	requireCode(t, err, protocol.CodeNotFound, "0000000000000")
	_, err = w.Fork(ctx, w.workflow, ForkOptions{})
	requireCode(t, err, protocol.CodeInvalid)

	step := w.mustStep(id, StepOptions{}).Head
	for _, node := range []protocol.Hash{step, w.readStep(step).Start} {
		fork, err := w.Fork(ctx, node, ForkOptions{})
		require.NoError(t, err)
		require.NotEqual(t, id, fork)
		require.Equal(t, node, w.head(fork))
	}
}

// Step 5,000 reads as many nodes as step 10.
func TestStepReadsAFixedNumberOfNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	limits := protocol.Limits{MaxSteps: 1 << 20, MaxVisitsPerRole: 1 << 20}
	w.workflow = w.put(testWorkflow(&limits))
	counts := map[int]int64{}
	for _, length := range []int{10, 5000} {
		id := w.start()
		w.lengthen(id, length)
		counting := &countingStore{Store: w.Reader.Store}
		e := *w.Engine
		e.Reader.Store = counting
		out, err := e.Step(context.Background(), id, StepOptions{})
		require.NoError(t, err)
		require.Equal(t, length, w.readStep(out.Head).Index)
		counts[length] = counting.gets.Load()
	}
	require.Equal(t, counts[10], counts[5000])
	require.Less(t, counts[10], int64(40))
}

// A step reads the start, the workflow, the last output and the new step once each. The head is read again
// after the agent has ended, as the agent may have damaged it.
func TestStepReadsNodesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.mustStep(id, StepOptions{})
	head := w.head(id)
	start := w.readStep(head).Start
	counting := &countingStore{Store: w.Reader.Store}
	w.Reader.Store = counting
	out := w.mustStep(id, StepOptions{})
	require.EqualValues(t, 1, counting.reads(out.Head))
	require.EqualValues(t, 1, counting.reads(start))
	counting.each.Range(func(h, n any) bool {
		want := int64(1)
		if h == head {
			want++
		}
		require.Equal(t, want, n.(*atomic.Int64).Load(), "node %s", h)
		return true
	})
}

// Between the last step and the archiving of a thread, or after an engine was killed there, the thread is
// shown as completed.
func TestCompletedBeforeItIsArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	files, ctx := w.Reader.Heads, context.Background()
	w.Reader.Heads = archiving{files, func() error {
		require.Equal(t, protocol.StatusCompleted, w.show(id).Status)
		return errors.New("killed")
	}}
	outs, err := w.Do(ctx, id, Work{Steps: UntilEnd})
	require.ErrorContains(t, err, "killed")
	require.Equal(t, protocol.StatusCompleted, outs[0].Status)
	require.False(t, outs[0].Done)
	require.Equal(t, protocol.StatusCompleted, w.show(id).Status)
	w.Reader.Heads = files
	require.True(t, w.mustStep(id, StepOptions{}).Done)
	require.Equal(t, protocol.StatusCompleted, w.show(id).Status)
}

// lengthen adds n steps to a thread without running agents.
func (w *world) lengthen(id string, n int) {
	w.t.Helper()
	ctx := context.Background()
	old := w.head(id)
	b := w.Reader.Batch()
	head := old
	for range n {
		head = w.extend(b, head)
	}
	require.NoError(w.t, b.Put(ctx))
	require.NoError(w.t, w.Reader.Heads.Move(ctx, id, old, head))
}

// The head must not refer to nodes that a power cut can remove. The engine flushes them unless the agent
// reports that it has.
func TestStepIsFlushedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,!durable:done")
	id := w.start()
	counting := &countingStore{Store: w.Reader.Store}
	w.Reader.Store = counting
	w.mustStep(id, StepOptions{})
	require.EqualValues(t, 1, counting.commits.Load())
	require.True(t, w.mustStep(id, StepOptions{}).Done)
	require.EqualValues(t, 1, counting.commits.Load())
}

func TestReadsWithBrokenConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.mustStep(id, StepOptions{})
	broken := &protocol.Error{Code: protocol.CodeInvalid, Message: "config.yaml:3: what is this"}
	w.Reader.Config = func(context.Context) (protocol.Config, error) { return protocol.Config{}, broken }

	out := w.show(id)
	require.Equal(t, protocol.StatusIdle, out.Status)
	require.Equal(t, "config.yaml:3: what is this", out.Error.Message)
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeInvalid, "config.yaml:3")
	require.NoError(t, w.Kill(context.Background(), id))
}

func TestTimesAreTheClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	at := time.Now().Add(-time.Minute) // the agent's clock differs
	w.Reader.Env.Now = func() time.Time { return at }
	id := w.start()
	w.mustStep(id, StepOptions{})
	w.mustStep(id, StepOptions{})
	ended, err := w.Reader.Heads.Ended(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, at.UnixMilli(), ended.CompletedAt)
	require.Equal(t, w.workflow, ended.Workflow)
	item := listed(w.Reader.Overview(), status.Listed{Ended: &ended})
	require.Equal(t, at.UnixMilli(), *item.StartedAt)
	require.Equal(t, at.UnixMilli(), *item.CompletedAt)
	require.Equal(t, "test", string(item.WorkflowName))
}

// The result of a run is the output of its last step, in the returned output and in show.
func TestTheResultOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	outs, err := w.Do(t.Context(), id, Work{Steps: UntilEnd})
	require.NoError(t, err)
	require.Len(t, outs, 2)
	require.Equal(t, w.readOutput(outs[0].Head), outs[0].Output)
	data := w.readOutput(outs[1].Head)
	for _, got := range []protocol.StepOutput{outs[1], w.show(id)} {
		require.Equal(t, "Done.", got.Message)
		require.Equal(t, data, got.Output)
	}
	first := w.start()
	require.Nil(t, w.show(first).Output)
	stepped := w.mustStep(first, StepOptions{})
	require.Equal(t, w.readOutput(stepped.Head), stepped.Output)
	require.Empty(t, stepped.Message)
}

// readOutput returns the data of the last step of a chain.
func (w *world) readOutput(head protocol.Hash) any {
	w.t.Helper()
	chain, err := thread.Open(context.Background(), w.Reader.Store, head)
	require.NoError(w.t, err)
	out, err := chain.Output(context.Background(), *chain.Last)
	require.NoError(w.t, err)
	return out.Value
}
