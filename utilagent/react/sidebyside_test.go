package react

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// together counts how many calls run concurrently, and records the order of their starts.
type together struct {
	mu         sync.Mutex
	now, most  int
	began      []string
	meet       chan struct{} // closed when want of them run concurrently
	want, seen int
}

func (g *together) tool(t *testing.T, spec tools.Spec, waits bool) tools.Tool {
	t.Helper()
	type in struct {
		Text string `json:"text"`
	}
	return tools.New(spec, func(ctx context.Context, a in) (string, error) {
		g.mu.Lock()
		g.began = append(g.began, spec.Name+a.Text)
		g.now++
		g.most = max(g.most, g.now)
		if waits {
			if g.seen++; g.seen == g.want {
				close(g.meet)
			}
		}
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.now--
		}()
		if waits {
			select {
			case <-g.meet:
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(time.Minute):
				return "", fmt.Errorf("%s waits in vain for the others", a.Text)
			}
		}
		return spec.Name + a.Text + " done", nil
	})
}

func (g *together) registry(t *testing.T) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(
		g.tool(t, tools.Spec{Name: "read", Effect: tools.Reads, SideBySide: true}, true),
		g.tool(t, tools.Spec{Name: "quiet", Effect: tools.Reads}, false),
		g.tool(t, tools.Spec{Name: "write", Effect: tools.Writes, SideBySide: true}, false),
	)
	require.NoError(t, err)
	return r
}

func calls(names ...string) (list []string) {
	for i, name := range names {
		list = append(list, fmt.Sprint("id", i), name[:len(name)-1], fmt.Sprintf(`{"text":%q}`, name[len(name)-1:]))
	}
	return list
}

func results(turns []protocol.Turn) (list []string) {
	for _, turn := range turns {
		if turn.Role == protocol.TurnTool {
			list = append(list, turn.ToolCallID+" "+turn.Content)
		}
	}
	return list
}

// Read-only calls run concurrently; their results are in the order of the calls.
func TestReadingCallsRunSideBySide(t *testing.T) {
	t.Parallel()
	g := &together{meet: make(chan struct{}), want: 3}
	b := newBench(t, script(t, reply("tool_calls", "", calls("read1", "read2", "read3", "write4", "read5", "quiet6", "quiet7")...), say(final)))
	b.Tools = g.registry(t)
	b.mustRun()
	require.Equal(t, []string{"id0 read1 done", "id1 read2 done", "id2 read3 done", "id3 write4 done", "id4 read5 done", "id5 quiet6 done", "id6 quiet7 done"},
		results(b.turns))
	require.Equal(t, 3, g.most)
	require.Equal(t, []string{"write4", "read5", "quiet6", "quiet7"}, g.began[3:], "what writes waits for them, and all after it for that")
}

// The number of concurrent calls is bounded.
func TestReadingCallsAreBounded(t *testing.T) {
	t.Parallel()
	g := &together{meet: make(chan struct{}), want: atOnce}
	b := newBench(t, script(t, reply("tool_calls", "", calls("reada", "readb", "readc", "readd", "reade", "readf", "readg", "readh", "readi", "readj")...), say(final)))
	b.Tools = g.registry(t)
	b.mustRun()
	require.Len(t, results(b.turns), 10)
	require.Equal(t, atOnce, g.most)
}

// A duplicate call runs after the first one, and loops are detected as before.
func TestSameReadingCallsInOneReply(t *testing.T) {
	t.Parallel()
	g := &together{meet: make(chan struct{}), want: 1}
	b := newBench(t, script(t, reply("tool_calls", "", calls("read1", "read1", "read1", "read1", "read1")...), say(final)))
	b.Tools = g.registry(t)
	b.mustRun()
	got := results(b.turns)
	require.Equal(t, 1, g.most)
	prosetest.Text(t, got[2])
	prosetest.Text(t, got[4])
}

// The last call of a reply that was cut off isn't run, even if it only reads.
func TestCutReadingCallIsNotRun(t *testing.T) {
	t.Parallel()
	g := &together{meet: make(chan struct{}), want: 1}
	b := newBench(t, script(t, reply("length", "", calls("read1", "read2", "read3")...), say(final)))
	b.Tools = g.registry(t)
	b.mustRun()
	require.Equal(t, []string{"read1", "read2"}, g.began)
	require.Contains(t, results(b.turns)[2], "cut off")
}

// The end of a run ends all calls and leaves no invalid result.
func TestReadingCallsEndWithTheRun(t *testing.T) {
	t.Parallel()
	g := &together{meet: make(chan struct{}), want: 3}
	m := script(t, reply("tool_calls", "", calls("read1", "read2")...))
	b := newBench(t, m)
	b.Tools = g.registry(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	s, err := b.sessions.New(llm.User("task"))
	require.NoError(t, err)
	go func() {
		_, err := b.Run(ctx, s)
		done <- err
	}()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.now == 2
	}, time.Minute, time.Millisecond)
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Empty(t, results(b.turns))
}
