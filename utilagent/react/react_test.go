package react

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/llm"
)

const final = "---\nok: true\n---\ndone"

func TestToolsRunInOrderAndTurnsAreRecorded(t *testing.T) {
	t.Parallel()
	m := script(t,
		reply("tool_calls", "Looking.", "a", "echo", `{"text":"1"}`, "b", "write", `{"text":"2"}`, "c", "Echo", `{"text":"3",}`),
		say(final))
	b := newBench(t, m)
	s, answer := b.mustRun()
	require.Equal(t, Answer{Text: final, Outcome: Done, Model: "m-2029", Bill: answer.Bill, Tokens: 24}, answer)
	require.Equal(t, 2, answer.Bill.Usage().Turns)
	require.EqualValues(t, 20, answer.Bill.Usage().InputTokens)
	require.InDelta(t, 1.0, *answer.Bill.Usage().CostUSD, 1e-9)
	require.Equal(t, []string{"echo 1", "write 2", "echo 3"}, b.ran)

	var told []string
	for _, turn := range b.turns {
		told = append(told, fmt.Sprintf("%s %s%s", turn.Role, turn.ToolCallID, turn.Content))
	}
	require.Equal(t, []string{"assistant Looking.", "tool aecho 1", "tool bwrote 2", "tool cecho 3", "assistant " + final}, told)
	require.Equal(t, map[string]any{"text": "3"}, b.turns[0].ToolCalls[2].Args)
	require.EqualValues(t, 10, b.turns[0].Usage.InputTokens)

	again, err := b.sessions.Open(s.ID)
	require.NoError(t, err)
	require.Equal(t, s.Messages, again.Messages, "what was saved is what was said")
	require.Equal(t, "auto", m.requests()[0].ToolChoice)
	require.Len(t, m.requests()[0].Tools, 3)
}

// Every call is answered once, in order, even if it is invalid.
func TestEveryCallIsAnswered(t *testing.T) {
	t.Parallel()
	m := script(t,
		reply("tool_calls", "", "a", "ecko", `{}`, "b", "echo", `{"text":"cut`, "c", "broken", `{}`, "", "echo", `{"text":5}`),
		say(final))
	b := newBench(t, m)
	b.mustRun()
	asked := m.requests()[1].Messages
	var answers []string
	for _, msg := range asked[3:] {
		require.Equal(t, "tool", msg.Role)
		answers = append(answers, msg.Content)
	}
	require.Len(t, answers, 4)
	prosetest.Text(t, answers[0])
	prosetest.Text(t, answers[1])
	require.Equal(t, "Error: it is broken. Do not use it", answers[2])
	require.Equal(t, "echo 5", answers[3])
	require.Equal(t, `{"text":"cut`, b.turns[0].ToolCalls[1].Args, "the record has what the model sent")
	require.NotEmpty(t, asked[2].ToolCalls[3].ID)
}

// A truncated reply may contain half of a file, so such a call must not run.
func TestCutCallIsNotRun(t *testing.T) {
	t.Parallel()
	m := script(t, reply("length", "", "a", "write", `{"text":"half of a`), say(final))
	b := newBench(t, m)
	b.mustRun()
	require.Empty(t, b.ran)
	prosetest.Text(t, m.requests()[1].last())
}

// Some endpoints close the arguments of a call that was cut off. It is the last call of its reply.
func TestRepairedCutCallIsNotRun(t *testing.T) {
	t.Parallel()
	m := script(t, reply("length", "", "a", "echo", `{"n":1}`, "b", "write", `{"text":"half of a"}`), say(final))
	b := newBench(t, m)
	b.mustRun()
	require.Len(t, b.ran, 1)
	require.Contains(t, m.requests()[1].last(), "cut off")
}

func TestTextWithoutABlockIsNudged(t *testing.T) {
	t.Parallel()
	m := script(t, say("Let me look."), say("<tool_call>{}</tool_call>"), callTool("a", "echo", `{}`), say(final))
	b := newBench(t, m)
	b.Turns = 3 // reminders don't count as turns
	_, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)
	prosetest.Text(t, m.requests()[1].last())
	prosetest.Text(t, m.requests()[2].last())
	require.Equal(t, protocol.TurnUser, b.turns[1].Role, "reminders are part of the record")
}

func TestNudgesEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, say("one"), say("two"), say("three"), say("four")))
	_, answer := b.mustRun()
	require.Equal(t, Incomplete, answer.Outcome)
	require.Equal(t, "four", answer.Text)

	_, _, err := newBench(t, script(t, say(""))).run()
	require.ErrorIs(t, err, ErrEmpty)
}

func TestCutAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	m := script(t, reply("length", final), say(final))
	_, answer := newBench(t, m).mustRun()
	require.Equal(t, Done, answer.Outcome)
	prosetest.Text(t, m.requests()[1].last())
}

func TestModelIsWarnedAndTheLastRoundHasNoTools(t *testing.T) {
	t.Parallel()
	var replies []http.HandlerFunc
	for i := range 4 {
		replies = append(replies, callTool(fmt.Sprint(i), "echo", fmt.Sprintf(`{"text":"%d"}`, i)))
	}
	replies = append(replies, reply("tool_calls", final, "x", "echo", `{}`)) // calls in spite of tool_choice none
	m := script(t, replies...)
	b := newBench(t, m)
	b.Turns = 5
	s, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)
	require.Len(t, b.ran, 4)
	asked := m.requests()
	require.Len(t, asked, 5)
	require.Equal(t, "echo 0", asked[1].last())
	prosetest.Text(t, asked[2].last())
	require.Equal(t, "echo 2", asked[3].last(), "the warning comes once")
	prosetest.Text(t, asked[4].last())
	require.Equal(t, []string{"auto", "none"}, []string{asked[3].ToolChoice, asked[4].ToolChoice})
	require.Len(t, asked[4].Tools, 3, "tools stay declared")
	require.Empty(t, s.Messages[len(s.Messages)-1].ToolCalls, "no call is left without an answer")
}

func TestTurnsUsedUpFallsBackToTheLastText(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, reply("tool_calls", "Half done.", "a", "echo", `{}`), say("")))
	b.Turns = 2
	_, answer := b.mustRun()
	require.Equal(t, MaxTurns, answer.Outcome)
	require.Equal(t, "Half done.", answer.Text)
}

func TestRepeatedCallsAreStopped(t *testing.T) {
	t.Parallel()
	m := script(t, callTool("a", "echo", `{"text":"x"}`))
	b := newBench(t, m)
	b.Turns = 8
	b.mustRun()
	require.Len(t, b.ran, 4, "the fifth is not run")
	asked := m.requests()
	require.Equal(t, "echo x", asked[2].last())
	prosetest.Text(t, asked[3].last())
	prosetest.Text(t, asked[5].last())
	prosetest.Text(t, asked[7].last())
}

// Reading again after a change is not a loop.
func TestAChangeForgivesRepeats(t *testing.T) {
	t.Parallel()
	var replies []http.HandlerFunc
	for i := range 6 {
		replies = append(replies, callTool("a", "echo", `{}`), callTool("b", "write", fmt.Sprintf(`{"text":"%d"}`, i)))
	}
	b := newBench(t, script(t, append(replies, say(final))...))
	b.Turns = 20
	_, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)
	require.Len(t, b.ran, 12)
}

func TestOnlyFailuresEndTools(t *testing.T) {
	t.Parallel()
	var replies []http.HandlerFunc
	for i := range 8 {
		replies = append(replies, callTool("a", "broken", fmt.Sprintf(`{"text":"%d"}`, i)))
	}
	m := script(t, append(replies, say("I am stuck."))...)
	b := newBench(t, m)
	b.Turns = 30
	_, answer := b.mustRun()
	require.Equal(t, Stuck, answer.Outcome)
	require.Equal(t, "I am stuck.", answer.Text)
	require.Len(t, m.requests(), 9)
	prosetest.Text(t, m.requests()[8].last())
}

func TestReadOnlyRefusesChanges(t *testing.T) {
	t.Parallel()
	m := script(t, reply("tool_calls", "", "a", "write", `{}`, "b", "echo", `{}`), say(final))
	b := newBench(t, m)
	b.ReadOnly = true
	b.mustRun()
	require.Equal(t, []string{"echo "}, b.ran)
	prosetest.Text(t, m.requests()[1].Messages[3].Content)
}

func TestSecretsAreHiddenInResults(t *testing.T) {
	t.Parallel()
	m := script(t, callTool("a", "echo", `{"text":"s3cret-key"}`), say(final))
	b := newBench(t, m)
	b.Redact = strings.NewReplacer("s3cret-key", "[hidden]").Replace
	b.mustRun()
	require.Equal(t, "echo [hidden]", m.requests()[1].last())
	require.Equal(t, "echo [hidden]", b.turns[1].Content)
}

// If an endpoint rejects the model's own call, the model must correct it.
func TestRefusedCallIsCorrected(t *testing.T) {
	t.Parallel()
	refused := fail(400, `{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<function=echo{}"}}`)
	m := script(t, refused, refused, refused, say(final))
	_, answer := newBench(t, m).mustRun()
	require.Equal(t, Done, answer.Outcome)
	last := m.requests()[3]
	require.Equal(t, "<function=echo{}", last.Messages[2].Content)
	require.Contains(t, last.last(), "malformed")

	_, _, err := newBench(t, script(t, refused)).run()
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, llm.ToolUse, e.Kind)
}

// Transient faults of the endpoint don't affect the result.
func TestFaultsThatPass(t *testing.T) {
	t.Parallel()
	stall := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	}
	for name, fault := range map[string]http.HandlerFunc{
		"rate limit": fail(429, `{}`), "HTML": fail(502, "<html><title>Bad Gateway</title></html>"),
		"hangs up": hangUp, "stalls": stall, "error with status 200": fail(200, `{"error":{"message":"overloaded"}}`),
		"half a JSON": fail(200, `{"choices":[{"mess`), "empty body": fail(200, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, script(t, fault, callTool("a", "echo", `{}`), fault, fault, say(final)))
			_, answer := b.mustRun()
			require.Equal(t, Done, answer.Outcome)
			require.Len(t, b.turns, 3, "nothing of a failed reply is recorded")
		})
	}
}

func TestFaultThatStaysKeepsWhatWasDone(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, callTool("a", "echo", `{}`), fail(401, `{"error":{"message":"no"}}`)))
	s, answer, err := b.run()
	require.ErrorContains(t, err, "HTTP 401")
	require.Equal(t, 1, answer.Bill.Usage().Turns)
	require.Len(t, b.turns, 2)
	require.Len(t, s.Messages, 4)
}

func TestRefusalIsAnError(t *testing.T) {
	t.Parallel()
	refusal := fail(200, `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"I cannot help."},"finish_reason":"stop"}]}`)
	_, _, err := newBench(t, script(t, refusal)).run()
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "I cannot help.")
}

func TestCancelEndsTheRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by a person")
	m := script(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(stop)
		<-r.Context().Done()
	})
	b := newBench(t, m)
	s, err := b.sessions.New(llm.User("task"))
	require.NoError(t, err)
	_, err = b.Run(ctx, s)
	require.ErrorIs(t, err, stop)
}

// A record that cannot be written ends the run, because the work would be lost.
func TestRecordFailureEndsTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, say(final)))
	broken := errors.New("disk full")
	b.Record = func(context.Context, protocol.Turn) error { return broken }
	_, _, err := b.run()
	require.ErrorIs(t, err, broken)
}

// Two calls that undo each other could repeat forever, although each changes something.
func TestCirclesAreStopped(t *testing.T) {
	t.Parallel()
	var replies []http.HandlerFunc
	for range 10 {
		replies = append(replies, callTool("a", "write", `{"text":"a"}`), callTool("b", "write", `{"text":"b"}`))
	}
	m := script(t, append(replies, say(final))...)
	b := newBench(t, m)
	b.Turns = 12
	b.mustRun()
	require.Len(t, b.ran, 8, "the fifth time round nothing is run")
	asked := m.requests()
	prosetest.Text(t, asked[6].last())
	prosetest.Text(t, asked[9].last())
}

// Results that differ only in durations count as equal.
func TestLengthsOfTimeAreNotNews(t *testing.T) {
	t.Parallel()
	require.Equal(t, withoutTimes("ok\n[exit 0, 1.2 s]"), withoutTimes("ok\n[exit 0, 1.31 s]"))
	require.NotEqual(t, withoutTimes("3 failed"), withoutTimes("2 failed"))
}
