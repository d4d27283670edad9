package react

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// narrow is a model with a context window. It reads one long thing after another, decides something at some
// of them, and rejects a conversation that is too long. It knows only what it reads: its summary contains the
// decisions it finds.
type narrow struct {
	t         *testing.T
	window    int // in tokens
	looks     int
	again     int          // number of things it reads in turn; 0 for a new one each time
	counts    bool         // report tokens
	decides   map[int]bool // reads at which it decides
	summarize func(known string) (llm.Response, error)
	asked     [][]llm.Message
	refused   int
	summaries int
}

var decided = regexp.MustCompile(`DECIDED \d+`)

// known returns the decisions in a conversation.
func known(messages []llm.Message) string {
	list := []string{}
	for _, m := range messages {
		list = append(list, decided.FindAllString(m.Content, -1)...)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

func (m *narrow) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	size := 0
	for i, msg := range req.Messages {
		size += sizeOf(msg)
		if msg.Role == protocol.TurnTool {
			require.Contains(m.t, []protocol.TurnRole{protocol.TurnAssistant, protocol.TurnTool}, req.Messages[i-1].Role)
		}
	}
	if size/charsPerToken > m.window {
		m.refused++
		return llm.Response{}, &llm.Error{Kind: errorkind.Context, Message: "too long"}
	}
	if req.Messages[len(req.Messages)-1].Content == askSummary {
		require.True(m.t, req.NoCalls)
		m.summaries++
		resp, err := m.summarize(known(req.Messages))
		resp.Message.Role, resp.Usage = protocol.TurnAssistant, protocol.Usage{Turns: 1, InputTokens: 7, OutputTokens: 3}
		return resp, err
	}
	m.asked = append(m.asked, append([]llm.Message(nil), req.Messages...))
	resp := llm.Response{Message: llm.Message{Role: protocol.TurnAssistant, Content: final}, Finish: llm.FinishStop}
	if m.looks--; m.looks >= 0 {
		resp.Message.Content = strings.Repeat("I look. ", 20)
		if m.decides[m.looks] {
			resp.Message.Content += fmt.Sprintf("DECIDED %d", m.looks)
		}
		resp.Message.ToolCalls = []llm.ToolCall{{ID: fmt.Sprint("id", m.looks), Name: "look", Args: fmt.Sprintf(`{"at":%d}`, m.looks%cmp.Or(m.again, m.looks+1))}}
	}
	if m.counts {
		resp.Usage = protocol.Usage{Turns: 1, InputTokens: int64(size / charsPerToken), OutputTokens: 10}
	}
	return resp, nil
}

func look(t *testing.T, size int) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(tools.New(tools.Spec{Name: "look", Parameters: map[string]any{
		"type": "object", "properties": map[string]any{"at": map[string]any{"type": "integer"}},
	}}, func(_ context.Context, a struct{ At int }) (string, error) {
		return fmt.Sprintf("seen %d %s end", a.At, strings.Repeat("é", size/2)), nil
	}))
	require.NoError(t, err)
	return r
}

// says returns a reply with what the model knows.
func says(known string) (llm.Response, error) {
	return llm.Response{Message: llm.Message{Content: "What counts: " + known + "\n\n## Task: none"}, Finish: llm.FinishStop}, nil
}

// told returns all texts of a conversation.
func told(messages []llm.Message) string {
	text := ""
	for _, m := range messages {
		text += m.Content + "\n"
	}
	return text
}

// A long run stays within the window and continues with a summary of the removed part: at the end the model
// knows what it decided in its third reply of three hundred. The removed turns stay recorded, and another
// process reads the same conversation.
func TestConversationStaysWithinTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts       bool
		told         int
		wantRefusals bool
	}{
		"tokens are counted":    {true, 8000, false},
		"tokens are estimated":  {false, 8000, false},
		"the window is unknown": {true, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const turns = 300
			m := &narrow{t: t, window: 8000, looks: turns, counts: c.counts, summarize: says, decides: map[int]bool{turns - 3: true, 100: true, 2: true}}
			sessions := Sessions{Dir: t.TempDir(), NewID: func() (string, error) { return "s", nil }}
			s, err := sessions.New(llm.System("system"), llm.User("habits"), llm.User("the task"))
			require.NoError(t, err)
			var rooms []string
			var turnsKept []protocol.Turn
			summaries := 0
			loop := Loop{
				Model: m, Tools: look(t, 2500), Turns: turns + 5, Window: c.told, Accept: accept,
				OnExchange: func(_ context.Context, a Exchange) error {
					if a.Room != "" {
						rooms = append(rooms, a.Room)
					}
					if a.Summary {
						summaries++
					}
					return nil
				},
				Record: func(_ context.Context, turn protocol.Turn) error {
					turnsKept = append(turnsKept, turn)
					return nil
				},
			}
			answer, err := loop.Run(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, Done, answer.Outcome)
			require.Equal(t, c.wantRefusals, m.refused > 0)
			require.Positive(t, m.summaries)
			require.Equal(t, m.summaries, summaries, "each is told of")
			require.Less(t, len(rooms), turns/5, "room is made seldom, for the sake of prompt caches")
			prosetest.Text(t, rooms[0])

			last := m.asked[len(m.asked)-1]
			require.Equal(t, "DECIDED 100, DECIDED 2, DECIDED 297", known(last))
			require.Equal(t, []string{"system", "habits"}, []string{last[0].Content, last[1].Content})
			require.Equal(t, 1, strings.Count(told(last), "the task\n"), "the task is never left out")
			require.Equal(t, 1, strings.Count(told(last), summaryHead), "a summary takes the place of the one before")
			require.Contains(t, told(last), "<summary id=", "its headings are not ours")

			require.Len(t, turnsKept, 2*turns+1+m.summaries, "what was removed is recorded as before, and so are the summaries")
			if c.counts {
				require.Equal(t, turns+1+m.summaries, answer.Bill.Usage().Turns, "a summary costs")
			}
			again, err := sessions.Open(s.ID)
			require.NoError(t, err)
			require.Equal(t, s.Messages, again.Messages)
			require.Len(t, again.Unfinished, len(turnsKept))
		})
	}
}

// Without a summary, a note replaces the removed part, and the record contains the reason. There is no second
// request for it.
func TestNoSummary(t *testing.T) {
	t.Parallel()
	refuse := func(kind errorkind.Kind) func(string) (llm.Response, error) {
		return func(string) (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: kind, Message: "no"} }
	}
	reply := func(m llm.Message, finish llm.Finish) func(string) (llm.Response, error) {
		return func(string) (llm.Response, error) { return llm.Response{Message: m, Finish: finish}, nil }
	}
	for name, c := range map[string]struct {
		summarize func(string) (llm.Response, error)
	}{
		"an error":      {refuse(errorkind.Server)},
		"too long":      {refuse(errorkind.Context)},
		"nothing":       {reply(llm.Message{Content: " \n"}, llm.FinishStop)},
		"a call":        {reply(llm.Message{ToolCalls: []llm.ToolCall{{ID: "x", Name: "look"}}}, llm.FinishCalls)},
		"a refusal":     {reply(llm.Message{Content: "I will not"}, llm.FinishRefusal)},
		"one too large": {reply(llm.Message{Content: strings.Repeat("long ", 20000)}, llm.FinishStop)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &narrow{t: t, window: 8000, looks: 40, counts: true, summarize: c.summarize}
			var rooms []string
			s := InMemory("s", llm.System("system"), llm.User("the task"))
			_, err := Loop{Model: m, Tools: look(t, 2500), Turns: 50, Window: 8000, Accept: accept, OnExchange: func(_ context.Context, a Exchange) error {
				if a.Room != "" {
					rooms = append(rooms, a.Room)
				}
				return nil
			}}.Run(t.Context(), s)
			require.NoError(t, err)
			prosetest.Text(t, rooms[0])
			require.Len(t, rooms, m.summaries)
			last := told(m.asked[len(m.asked)-1])
			prosetest.Text(t, last)
			require.NotContains(t, last, "I will not")
		})
	}
}

// An error that would also affect the next request removes nothing: the run ends and continues later with the
// whole conversation.
func TestSummaryThatMustWait(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 8000, looks: 40, counts: true, summarize: func(string) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Kind: errorkind.RateLimit, Message: "later"}
	}}
	s := InMemory("s", llm.System("system"), llm.User("the task"))
	loop := Loop{Model: m, Tools: look(t, 2500), Turns: 50, Window: 8000, Accept: accept}
	_, err := loop.Run(t.Context(), s)
	require.ErrorContains(t, err, "later")
	prosetest.Text(t, told(s.Messages))
	m.summarize = says
	require.NoError(t, s.Add(llm.User("go on")))
	_, err = loop.Run(t.Context(), s)
	require.NoError(t, err)
}

// A nearly exhausted budget is not spent on a summary.
func TestNoSummaryBeyondTheBudget(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 8000, looks: 400, counts: true, summarize: says}
	s := InMemory("s", llm.User("the task"))
	_, err := Loop{Model: m, Tools: look(t, 2500), Turns: 500, Window: 8000, Accept: accept, Budget: Budget{Tokens: 34000}}.Run(t.Context(), s)
	require.NoError(t, err)
	require.Zero(t, m.summaries)
}

// The task of a later visit stays, whether it is inside the removed part or after it.
func TestRoomAroundTheTask(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 8000, looks: 8, counts: true, summarize: says, decides: map[int]bool{6: true}}
	sessions := Sessions{Dir: t.TempDir(), NewID: func() (string, error) { return fmt.Sprint("s", rand.Uint64()), nil }}
	s, err := sessions.New(llm.System("system"), llm.User("task 1"))
	require.NoError(t, err)
	for n := 2; n < 8; n++ {
		loop := Loop{Model: m, Tools: look(t, 2500), Turns: 50, Window: 8000, Accept: accept}
		_, err = loop.Run(t.Context(), s)
		require.NoError(t, err)
		again, err := sessions.Open(s.ID)
		require.NoError(t, err)
		require.Equal(t, s.Messages, again.Messages)
		task := fmt.Sprint("task ", n)
		s, err = sessions.Copy(s.ID, asks(task))
		require.NoError(t, err)
		m.looks = 8
		_, err = loop.Run(t.Context(), s)
		require.NoError(t, err)
		last := m.asked[len(m.asked)-1]
		require.Contains(t, told(last), task+"\n")
		require.Equal(t, "DECIDED 6", known(last))
		m.looks = 8
		require.NoError(t, s.Add(llm.User("more")))
	}
	require.Positive(t, m.summaries)
	require.Zero(t, m.refused)
}

// Removed content may be read again, however often it was read before.
func TestLookAgainAfterRoomWasMade(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 8000, looks: 120, again: 6, counts: true, summarize: says}
	s := InMemory("s", llm.System("system"), llm.User("the task"))
	var refused []string
	_, err := Loop{Model: m, Tools: look(t, 2500), Turns: 150, Window: 8000, Accept: accept, Record: func(_ context.Context, turn protocol.Turn) error {
		if turn.Role == protocol.TurnTool && !strings.HasPrefix(turn.Content, "seen") {
			refused = append(refused, turn.Content)
		}
		return nil
	}}.Run(t.Context(), s)
	require.NoError(t, err)
	require.Greater(t, m.summaries, repeatsToStop)
	require.Empty(t, refused)
}

// A killed process has removed everything or nothing.
func TestKilledWhileRoomIsMade(t *testing.T) {
	t.Parallel()
	sessions := Sessions{Dir: t.TempDir(), NewID: func() (string, error) { return "s", nil }}
	s, err := sessions.New(llm.System("system"), llm.User("the task"))
	require.NoError(t, err)
	m := &narrow{t: t, window: 8000, looks: 40, counts: true}
	ctx, kill := context.WithCancel(t.Context())
	m.summarize = func(string) (llm.Response, error) {
		kill()
		return llm.Response{}, context.Canceled
	}
	loop := Loop{Model: m, Tools: look(t, 2500), Turns: 50, Window: 8000, Accept: accept}
	_, err = loop.Run(ctx, s)
	require.ErrorIs(t, err, context.Canceled)
	before, err := sessions.Open("s")
	require.NoError(t, err)
	prosetest.Text(t, told(before.Messages))
	require.NoError(t, before.Add(llm.User("go on")))

	// The line is written, but no turn is recorded.
	died := errors.New("died")
	m.summarize = says
	loop.Record = func(_ context.Context, turn protocol.Turn) error {
		if strings.HasPrefix(turn.Content, summaryHead) {
			return died
		}
		return nil
	}
	_, err = loop.Run(t.Context(), before)
	require.ErrorIs(t, err, died)
	path := filepath.Join(sessions.Dir, "s.jsonl")
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	after, err := sessions.Open("s")
	require.NoError(t, err)
	require.Contains(t, told(after.Messages), summaryHead)
	n := len(after.Unfinished)
	require.Contains(t, after.Unfinished[n-1].Content, "What counts")
	require.EqualValues(t, 7, after.Unfinished[n-1].Usage.InputTokens, "what it cost is not lost")
	require.Equal(t, protocol.TurnUser, after.Unfinished[n-1].Role, "it is no answer")
	replies := 0
	for _, turn := range after.Unfinished {
		if turn.Role == protocol.TurnAssistant {
			replies++
		}
	}
	require.Equal(t, replies+1, after.Spent.Usage().Turns)

	// The line is incomplete.
	require.NoError(t, os.WriteFile(path, file[:len(file)-3], 0o600))
	torn, err := sessions.Open("s")
	require.NoError(t, err)
	prosetest.Text(t, told(torn.Messages))
	loop.Record = nil
	require.NoError(t, torn.Add(llm.User("go on")))
	_, err = loop.Run(t.Context(), torn)
	require.NoError(t, err)
	require.Contains(t, told(torn.Messages), summaryHead)
}

// A single result cannot displace everything else.
func TestResultIsCutForASmallWindow(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 2000, looks: 1}
	s := InMemory("s", llm.User("task"))
	_, err := Loop{Model: m, Tools: look(t, 20000), Window: 2000, Accept: accept}.Run(t.Context(), s)
	require.NoError(t, err)
	require.Zero(t, m.refused)
	result := s.Messages[2].Content
	require.Less(t, len(result), 1200)
	prosetest.Text(t, result)
	require.True(t, strings.HasPrefix(result, "seen 0") && strings.HasSuffix(result, "end"), result)
}

func TestTaskThatDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	m := &narrow{t: t, window: 100}
	_, err := Loop{Model: m, Accept: accept}.Run(t.Context(), InMemory("s", llm.User(strings.Repeat("x", 4000))))
	prosetest.Error(t, err)
	require.Equal(t, 1, m.refused)
}
