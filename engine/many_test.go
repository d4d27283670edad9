//go:build unix

package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// newManyWorld returns a world whose workflow has n children. Their agents log their runs: see the action
// witness.
func newManyWorld(t *testing.T, n int) *world {
	w := newWorld(t, "!witness:done")
	flow, schema := testWorkflow(nil)
	flow.Roles = map[string]protocol.Role{
		"worker": flow.Roles["worker"],
		"all":    {Description: "All of them.", Capabilities: []string{}, Join: "{ '$status': 'done' }", Each: &protocol.EachRole{Of: fmt.Sprintf("[1..%d]", n), ChildRole: protocol.ChildRole{Role: "worker", Prompt: "item {{item}}"}}},
	}
	flow.Graph = map[string]protocol.GraphNode{
		protocol.StartNode: {Edges: map[string]protocol.Edge{"_": {Role: "all"}}},
		"all":              {Edges: map[string]protocol.Edge{"done": {Role: protocol.EndNode}, "failed": {Role: protocol.EndNode}}},
	}
	schema["additionalProperties"] = true
	w.workflow = w.put(flow, schema)
	return w
}

// runsByPrompt counts the runs of agents by prompt.
func (w *world) runsByPrompt() map[string]int {
	count := map[string]int{}
	for _, line := range w.runs() {
		if prompt, ok := strings.CutPrefix(line, "told "); ok {
			count[prompt]++
		}
	}
	return count
}

// over returns the prompts of the children that have ended.
func (w *world) over(parent string) map[string]bool {
	w.t.Helper()
	over := map[string]bool{}
	standings, err := heads.ThreadStates(context.Background(), w.Reader.Heads)
	require.NoError(w.t, err)
	for id, at := range standings {
		if id != parent && at.End != nil {
			over[w.readStep(at.Head).EdgePrompt] = true
		}
	}
	return over
}

var (
	manyChildren = flag.Int("many.children", 30, "of a run that is killed at random")
	manySeed     = flag.Uint64("many.seed", 1, "when who is killed")
	manyKills    = flag.Int("many.kills", 16, "how often drivers are killed, with one run after the other")
)

// Two concurrent drivers are killed at random changes to the disk, and some agents as well: ended children
// aren't run again.
func TestManyKilledAtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(*manySeed, 0))
	for killed := 0; killed < *manyKills; {
		killed += killedAtRandom(t, random, *manyKills-killed)
		t.Log("drivers killed:", killed)
	}
}

// killedAtRandom kills the drivers of a run at most that often, and returns the number of kills.
func killedAtRandom(t *testing.T, random *rand.Rand, most int) (killed int) {
	w := newManyWorld(t, *manyChildren)
	id := w.start()
	for killed < most && !w.show(id).Done {
		over, before := w.over(id), w.runsByPrompt()
		var drivers []*exec.Cmd
		for range 2 {
			cmd := w.engineProcess(id, "!witness:done", "drive")
			cmd.Env = append(cmd.Env, fmt.Sprint(killAt, "=", 1+random.IntN(120)))
			cmd.Stderr = nil // a second driver
			require.NoError(t, cmd.Start())
			drivers = append(drivers, cmd)
		}
		for _, cmd := range drivers {
			if cmd.Wait() != nil && !cmd.ProcessState.Exited() {
				killed++
			}
		}
		for prompt, n := range w.runsByPrompt() {
			require.False(t, over[prompt] && n > before[prompt], "%s had ended, and was run again", prompt)
		}
	}
	for range 3 { // agents killed the first time are retried
		if w.show(id).Done {
			break
		}
		_, _ = w.Do(context.Background(), id, Work{})
	}
	require.True(t, w.show(id).Done)
	require.Len(t, w.runsByPrompt(), *manyChildren)
	require.Equal(t, *manyChildren, len(w.readStep(w.head(id)).Children))
	return killed
}

// mortalHeads fail when the end of a thread is recorded, as if the driver were killed there.
type (
	mortalHeads struct{ allHeads }
	allHeads    = heads.Heads
)

// Archive implements [heads.Heads].
func (mortalHeads) Archive(context.Context, heads.Ended) error { return errors.New("killed") }

// If a driver is killed before it records the end of a child, a driver or a scheduler continues with the
// parent.
func TestTheEndOfAChildIsNotNoted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, goOn := range map[string]func(w *world, parent string) error{
		"driven": func(w *world, parent string) error { _, err := w.Do(ctx, parent, Work{}); return err },
		"ticked": func(w *world, parent string) error {
			var err error
			for range 4 { // record its end, step the other child, join
				err = errors.Join(err, w.Tick(ctx, 1, StepOptions{}, func(Ticked) {}))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newManyWorld(t, 2)
			id := w.start()
			child := w.mustStep(id, StepOptions{}).Children[0].Thread
			dies := *w.Engine
			dies.Reader.Heads = mortalHeads{w.Reader.Heads}
			_, err := dies.Step(ctx, child, StepOptions{})
			require.ErrorContains(t, err, "killed")
			require.Equal(t, protocol.StatusWaitingForChildren, w.show(id).Status)
			require.NoError(t, goOn(w, id))
			require.True(t, w.show(id).Done)
			require.Len(t, w.runs(), 4, "each of the two is run, and told, once")
		})
	}
}

// interruptingLocks reports each child's lock as held, and interrupts the process that asks.
type interruptingLocks struct {
	locker.Locker
	parent    string
	interrupt func()
}

// Held implements [locker.Locker].
func (l interruptingLocks) Held(ctx context.Context, thread string) bool {
	if thread == l.parent {
		return l.Locker.Held(ctx, thread)
	}
	l.interrupt()
	return true
}

// A process that is interrupted while it waits for another driver of a child doesn't report that the child is
// being retried.
func TestInterruptedWhileItJoins(t *testing.T) {
	t.Parallel()
	w := newManyWorld(t, 2)
	id := w.start()
	for _, child := range w.mustStep(id, StepOptions{}).Children {
		w.mustStep(child.Thread, StepOptions{})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	now := time.Now()
	interrupted := *w.Engine
	interrupted.Reader.Env.Now = func() time.Time { return now }
	interrupted.Reader.Locks = interruptingLocks{w.Reader.Locker(), id, func() { cancel(&SignalError{Signal: syscall.SIGINT}) }}
	_, err := interrupted.Step(ctx, id, StepOptions{})
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeInterrupted})
	require.True(t, w.mustStep(id, StepOptions{}).Done)
}

// fullFS is a disk that is full after some changes, until left is negative.
type fullFS struct {
	durable.FS
	left *atomic.Int64
}

func (f fullFS) full(path string) error {
	if f.left.Load() >= 0 && f.left.Add(-1) <= 0 {
		f.left.Store(0)
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	return nil
}

// WriteTemp implements [durable.FS].
func (f fullFS) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (string, error) {
	if err := f.full(path); err != nil {
		return "", err
	}
	return f.FS.WriteTemp(path, data, perm, flush)
}

// Append implements [durable.FS].
func (f fullFS) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	if err := f.full(path); err != nil {
		return err
	}
	return f.FS.Append(path, data, perm, flush)
}

// If the disk fills up while children run, that is reported, no ended child is lost, and the others run once
// there is space.
func TestManyOnAFullDisk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const children = 6
	for _, after := range []int64{1, 20, 40, 55} {
		w := newManyWorld(t, children)
		id := w.start()
		left := &atomic.Int64{}
		left.Store(after)
		e := openEngine(t, w.Reader.Dirs.Home, fullFS{durable.OS(), left}, func() protocol.Config { return w.config })
		_, err := e.Do(ctx, id, Work{StepOptions: StepOptions{Parallel: 3}})
		require.ErrorIs(t, err, syscall.ENOSPC)
		over, before := w.over(id), w.runsByPrompt()
		_, err = w.Do(ctx, id, Work{})
		require.NoError(t, err)
		require.True(t, w.show(id).Done)
		for prompt, n := range w.runsByPrompt() {
			require.False(t, over[prompt] && n > before[prompt], "%s had ended, and was run again", prompt)
		}
		require.Len(t, w.runsByPrompt(), children)
	}
}
