package react

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// busy is a model that works for n replies and would then be done.
func busy(n int) []http.HandlerFunc {
	var replies []http.HandlerFunc
	for i := range n {
		replies = append(replies, callTool(fmt.Sprint(i), "echo", fmt.Sprintf(`{"text":"%d"}`, i)))
	}
	return append(replies, say(final))
}

// Every reply of the scripted model costs 12 tokens and half a dollar.
func TestBudgetsAreReported(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		budget Budget

		requests int
	}{
		{"tokens", Budget{Tokens: 120}, 10},
		{"cost", Budget{CostUSD: 5}, 10},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := script(t, busy(20)...)
			b := newBench(t, m)
			b.Turns, b.Budget = 30, c.budget
			_, answer := b.mustRun()
			asked := m.requests()
			require.Len(t, asked, c.requests)
			require.Equal(t, "none", asked[c.requests-1].ToolChoice)
			prosetest.Text(t, asked[c.requests-1].last())
			warned := 0
			for _, msg := range asked[c.requests-1].Messages {
				if len(msg.Content) > 20 && msg.Content[len(msg.Content)-1] == ']' {
					warned++
				}
			}
			require.Equal(t, 2, warned, "one warning, and the last word")
			require.NotEqual(t, Done, answer.Outcome)
			require.LessOrEqual(t, answer.Bill.Usage().InputTokens+answer.Bill.Usage().OutputTokens, int64(120))
		})
	}
}

// A model that obeys the last request ends well; otherwise its last text is kept.
func TestLastWordIsTheAnswer(t *testing.T) {
	t.Parallel()
	m := script(t, callTool("a", "echo", `{"text":"1"}`), say(final))
	b := newBench(t, m)
	b.Budget.Tokens = 30
	_, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)

	m = script(t, reply("tool_calls", "Half done.", "a", "echo", `{}`), say("I need more."))
	b = newBench(t, m)
	b.Budget.Tokens = 30
	s, answer := b.mustRun()
	require.Equal(t, MaxTokens, answer.Outcome)
	require.Equal(t, "I need more.", answer.Text)
	again, err := b.sessions.Copy(s.ID, asks("go on"))
	require.NoError(t, err)
	require.Len(t, again.Messages, 6, "the conversation can go on")
}

// The reported limit is the one that caused the last request, even if that request exhausts another one.
func TestTheLimitThatWasReachedIsNamed(t *testing.T) {
	t.Parallel()
	m := script(t, busy(3)...)
	b := newBench(t, m)
	b.Turns, b.Budget.Tokens = 3, 30
	_, answer := b.mustRun()
	require.Len(t, m.requests(), 2)
	require.Equal(t, MaxTokens, answer.Outcome)
}

// A budget smaller than one request ends after it.
func TestBudgetSmallerThanAQuestion(t *testing.T) {
	t.Parallel()
	m := script(t, busy(3)...)
	b := newBench(t, m)
	b.Budget.Tokens = 5
	_, answer := b.mustRun()
	require.Equal(t, MaxTokens, answer.Outcome)
	require.Len(t, m.requests(), 1)
}

func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	var minutes atomic.Int64
	m := script(t, busy(30)...)
	b := newBench(t, m)
	b.Turns, b.Budget.Time = 30, 10*time.Minute
	b.Now = func() time.Time { return time.Unix(0, 0).Add(time.Duration(minutes.Load()) * time.Minute) }
	b.OnExchange = func(context.Context, Exchange) error { minutes.Add(1); return nil }
	_, answer := b.mustRun()
	require.Equal(t, MaxTime, answer.Outcome)
	asked := m.requests()
	require.Len(t, asked, 10)
	prosetest.Text(t, asked[8].last())
	prosetest.Text(t, asked[9].last())
}

// Time that runs out during a request ends it.
func TestTimeEndsAQuestion(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	m := script(t, callTool("a", "echo", `{}`), hang)
	b := newBench(t, m)
	b.Model = llm.New(m.config(), llm.Options{})
	b.Now, b.Budget.Time = time.Now, 200*time.Millisecond
	_, answer := b.mustRun()
	require.Equal(t, MaxTime, answer.Outcome)
	require.Len(t, b.turns, 2, "what was done is recorded")
}

func TestBudgetOfCostNeedsACost(t *testing.T) {
	t.Parallel()
	free := fail(200, `{"choices":[{"message":{"role":"assistant","content":"---"},"finish_reason":"stop"}]}`)
	b := newBench(t, script(t, free))
	b.Budget.CostUSD = 1
	_, _, err := b.run()
	require.ErrorIs(t, err, ErrCostUnknown)
}

// A token budget works even if the endpoint reports no usage.
func TestTokensAreEstimated(t *testing.T) {
	t.Parallel()
	free := func(w http.ResponseWriter, r *http.Request) {
		fail(200, `{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"echo","arguments":"{}"}}]}}]}`)(w, r)
	}
	b := newBench(t, script(t, free))
	b.Budget.Tokens, b.Turns = 2000, 100
	_, answer := b.mustRun()
	require.Contains(t, []Outcome{MaxTokens, Stuck}, answer.Outcome)
	require.Nil(t, answer.Bill.Usage(), "what nobody counted is not told as counted")
}
