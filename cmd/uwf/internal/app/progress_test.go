package app

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestCountingLineKeepsWithinTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Unix(100, 0)
	v := &Display{w: &out, live: true, now: func() time.Time { return at.Add(3 * time.Second) }, size: func() (int, int) { return 40, 24 }}
	step := engine.StepInfo{Number: 1, Role: "planner", Agent: "builtin", Started: at}
	shows{v}.StepStarted(step)
	shows{v}.Turn(step, protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{Name: "read_file", Args: map[string]any{"path": "a\x1b[31m.go"}}}, Usage: &protocol.Usage{InputTokens: 1200, OutputTokens: 34}})
	shows{v}.Writing(step, protocol.Turn{Role: protocol.TurnAssistant, Content: "I think that this is the cause of it all"})
	role := "planner"
	shows{v}.StepEnded(step, protocol.StepOutput{Status: protocol.StatusIdle, CurrentRole: protocol.NullString(role)}, nil)
	text := out.String()
	require.Contains(t, text, "  → read_file a [31m.go\n", "what agents say cannot rewrite the terminal")
	require.Contains(t, text, "\r\x1b[K  planner · 3s · 1 turn · 1,234 tokens…")
	require.Contains(t, text, "\r\x1b[K✓ planner → planner  3.0s\n")
	for _, line := range bytes.Split([]byte(text), []byte("\r\x1b[K")) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			require.LessOrEqual(t, term.Length(string(line)), 39)
		}
	}
}

// Colours mark lines by their content and change nothing else.
func TestColoursOfTheView(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Unix(100, 0)
	v := &Display{w: &out, colours: true, now: func() time.Time { return at }, size: func() (int, int) { return 40, 24 }}
	step := engine.StepInfo{Number: 1, Role: "planner", Agent: "builtin", Started: at, Ended: at.Add(time.Second)}
	shows{v}.StepStarted(step)
	cost := 0.01
	shows{v}.StepEnded(step, protocol.StepOutput{
		Status: protocol.StatusCompleted, Output: map[string]any{"$status": "approved"},
		Usage: &protocol.Usage{InputTokens: 5400, OutputTokens: 120, CostUSD: &cost},
	}, nil)
	shows{v}.StepEnded(step, protocol.StepOutput{Status: protocol.StatusSuspended, Question: &protocol.Question{}}, nil)
	shows{v}.StepEnded(step, protocol.StepOutput{}, errors.New("no"))
	require.Equal(t, "\x1b[1mstep 1: planner (builtin)\x1b[m\n"+
		"\x1b[32m✓ planner → approved → $END  1.0s  5.4k/120  $0.010\x1b[m\n"+
		"\x1b[33m? planner → a person  1.0s\x1b[m\n"+
		"\x1b[31m✗ planner failed  1.0s\x1b[m\n", out.String())
}

// A denied or failed call is visible at once, and counted at the end.
func TestFailedToolsAreMarked(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Unix(100, 0)
	v := &Display{w: &out, live: true, now: func() time.Time { return at }, size: func() (int, int) { return 60, 24 }}
	step := engine.StepInfo{Number: 1, Role: "tester", Started: at, Ended: at.Add(time.Second)}
	shows{v}.StepStarted(step)
	shows{v}.Turn(step, protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: "a", Name: "run_command"}, {ID: "b", Name: "grep"}, {ID: "c", Name: "Bash"}}})
	for i, text := range []string{"Error: commands are switched off here.", "3 matches", "FAIL\n[exit 1, 0.3 s]"} {
		shows{v}.Turn(step, protocol.Turn{Role: protocol.TurnTool, ToolCallID: string(rune('a' + i)), Content: text})
	}
	shows{v}.StepEnded(step, protocol.StepOutput{Status: protocol.StatusCompleted}, nil)
	prosetest.Text(t, out.String())
	require.Contains(t, out.String(), "  ✗ Bash  exit 1, 0.3 s\n")
	require.NotContains(t, out.String(), "✗ grep")
	require.Contains(t, out.String(), "✓ tester → $END  1.0s  2 tool calls failed\n")
}

// A command has no turns, so its last output line is shown.
func TestACommandAtWorkShowsItsLastLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Unix(100, 0)
	v := &Display{w: &out, live: true, now: func() time.Time { return at.Add(3 * time.Second) }, size: func() (int, int) { return 60, 24 }}
	step := engine.StepInfo{Number: 1, Role: "tests", Agent: protocol.CommandAgent, Started: at}
	shows{v}.StepStarted(step)
	shows{v}.Writing(step, protocol.Turn{Role: protocol.TurnTool, Content: "ok  \x1b[31mcas/fsck 1.2s"})
	shows{v}.StepEnded(step, protocol.StepOutput{Status: protocol.StatusCompleted}, nil)
	require.Contains(t, out.String(), "\r\x1b[K  tests · 3s · ok [31mcas/fsck 1.2s\r")
}

// shows generates events for a display.
type shows struct{ *Display }

func (s shows) StepStarted(at engine.StepInfo) {
	s.Show(engine.Event{Kind: engine.StepStarted, Step: at})
}

func (s shows) Turn(at engine.StepInfo, t protocol.Turn) {
	s.Show(engine.Event{Kind: engine.Turn, Step: at, Turn: &t})
}

func (s shows) Writing(at engine.StepInfo, t protocol.Turn) {
	s.Show(engine.Event{Kind: engine.Writing, Step: at, Turn: &t})
}

func (s shows) StepEnded(at engine.StepInfo, out protocol.StepOutput, err error) {
	s.Show(engine.Event{Kind: engine.StepEnded, Step: at, Output: &out, Err: err})
}

func (s shows) Children(of engine.StepInfo, stand []protocol.ChildOutput) {
	s.Show(engine.Event{Kind: engine.Children, Step: of, Children: stand})
}
