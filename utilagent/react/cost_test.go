package react

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A single reply without usage must neither make the sum too low nor produce a turn with zeros.
func TestOneReplyWithoutUsage(t *testing.T) {
	t.Parallel()
	calls := `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"echo","arguments":"{}"}}]}}]%s}`
	counted := `,"usage":{"prompt_tokens":100,"completion_tokens":5,"cost":0.4}`
	b := newBench(t, script(t, fail(200, fmt.Sprintf(calls, counted)), fail(200, fmt.Sprintf(calls, "")),
		fail(200, `{"choices":[{"message":{"content":"---\nx: 1\n---\n"},"finish_reason":"stop"}]`+counted+`}`)))
	b.Budget.CostUSD = 2
	_, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome, "a budget of cost survives one reply of unknown cost")
	require.Nil(t, answer.Bill.Usage())
	require.EqualValues(t, 200, answer.Bill.AtLeast.InputTokens)
	require.Equal(t, 1, answer.Bill.Uncounted)
	var known []bool
	for _, turn := range b.turns {
		if turn.Role == "assistant" {
			known = append(known, turn.Usage != nil)
		}
	}
	require.Equal(t, []bool{true, false, true}, known)
}
