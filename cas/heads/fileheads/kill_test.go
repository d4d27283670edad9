package fileheads_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

const workerVar = "UWF_TEST_WORKER" // set in the processes started by TestKill

// stepsPerThread is the length of a worker's threads.
const stepsPerThread = 3

func TestMain(m *testing.M) {
	if name := os.Getenv(workerVar); name != "" {
		fmt.Fprintln(os.Stderr, work(context.Background(), os.Args[1], name))
		os.Exit(1)
	}
	tmpfstest.Main(prosetest.Of(m))
}

// work runs threads until it is killed, and acknowledges each operation on stdout. It returns only on
// failure.
func work(ctx context.Context, root, name string) error {
	w, err := newWorld(ctx, root, unflushed{durable.OS()})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		id := id(fmt.Sprintf("%s-%d", name, i))
		if err := w.start(ctx, id, "w"); err != nil {
			return err
		}
		for n := range stepsPerThread {
			fmt.Printf("%s has %d steps\n", id, n)
			if err := w.step(ctx, id); err != nil {
				return err
			}
		}
		fmt.Printf("%s has %d steps\n", id, stepsPerThread)
		if err := w.end(ctx, id); err != nil {
			return err
		}
		fmt.Printf("%s has ended\n", id)
	}
}

// TestKill kills processes that work in one home, at random moments. Acknowledged operations are visible, the
// one in progress is either done or not, and later processes continue.
func TestKill(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), t.TempDir()
	w, err := newWorld(ctx, root, unflushed{durable.OS()})
	require.NoError(t, err)
	require.NoError(t, w.register(ctx, "w"))

	// On a slow machine the workers get less done before they are killed, so more rounds are needed.
	for round, acts := 0, 0; round < 20 || acts < 100; round++ {
		var together sync.WaitGroup
		acknowledged := make([][]string, 3)
		for i := range acknowledged {
			together.Go(func() { acknowledged[i] = killedWorker(t, root, fmt.Sprintf("r%dw%d", round, i)) })
		}
		together.Wait()
		names, err := w.names(ctx)
		require.NoError(t, err)
		for _, lines := range acknowledged {
			checkKilled(ctx, t, w, names, lines)
			acts += len(lines)
		}
	}
	names, err := w.names(ctx)
	require.NoError(t, err)
	_, err = w.reachable(ctx, names)
	require.NoError(t, err)
}

// killedWorker runs a worker, kills it, and returns what it acknowledged.
func killedWorker(t *testing.T, root, name string) []string {
	cmd := exec.Command(os.Args[0], root)
	cmd.Env = append(os.Environ(), workerVar+"="+name)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Errorf("start worker: %v", err)
		return nil
	}
	var acknowledged []string
	var timer *time.Timer
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		if timer == nil { // at a random moment once it is working
			timer = time.AfterFunc(rand.N(40*time.Millisecond), func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		acknowledged = append(acknowledged, scanner.Text())
	}
	if cmd.Wait() == nil || stderr.Len() > 0 {
		t.Errorf("worker %s ended by itself: %s", name, stderr.String())
	}
	return acknowledged
}

// checkKilled compares a worker's acknowledgments with the actual state. All its threads except the last have
// ended.
func checkKilled(ctx context.Context, t *testing.T, w world, names map[string]protocol.Hash, acknowledged []string) {
	t.Helper()
	for i, line := range acknowledged {
		id, state, _ := strings.Cut(line, " has ")
		active, ended := names["active "+id], names["ended "+id]
		if state == "ended" {
			require.Empty(t, active, line)
			require.NotEmpty(t, ended, line)
			continue
		}
		if i < len(acknowledged)-1 {
			continue // the next line contains more
		}
		var steps int
		_, err := fmt.Sscanf(state, "%d steps", &steps)
		require.NoError(t, err)
		require.True(t, active != "" || steps == stepsPerThread && ended != "", "%s, but it is gone", line)
		th, err := thread.Open(ctx, w.store, max(active, ended))
		require.NoError(t, err)
		require.Contains(t, []int{steps, steps + 1}, th.Len(), line)
		require.LessOrEqual(t, th.Len(), stepsPerThread)
	}
}
