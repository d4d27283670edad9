//go:build endpoint

package react

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/internal/foreigntest"
	"github.com/united-workforce/uwf/utilagent/llm"
)

func foreignBench(t *testing.T, url string, stream bool) *bench {
	t.Helper()
	b := newBench(t, script(t, say("not asked")))
	b.Model = llm.New(config.Endpoint{BaseURL: url, APIKey: "sk-fake-key-000", Model: "gpt-4o", Provider: "foreign", Stream: stream}, llm.Options{
		Sleep: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	})
	return b
}

func (b *bench) ask(text string) (Answer, error) {
	b.t.Helper()
	s, err := b.sessions.New(llm.System("system"), llm.User(text))
	require.NoError(b.t, err)
	return b.Run(b.t.Context(), s)
}

func TestForeignEndpoint(t *testing.T) {
	url := foreigntest.Start(t, "testdata/foreign/fixtures.json")
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %v", stream), func(t *testing.T) {
			b := foreignBench(t, url, stream)
			var written []string
			b.Watch = func(soFar func() llm.Message) { written = append(written, soFar().Content) }
			answer, err := b.ask("count")
			require.NoError(t, err)
			require.Equal(t, Done, answer.Outcome)
			require.Equal(t, []string{`echo one "quoted" ✓`, "write two"}, b.ran, "parallel calls, in order")
			require.Equal(t, final, answer.Text)
			require.EqualValues(t, 12, b.turns[3].Usage.OutputTokens)
			require.Equal(t, stream, len(written) > 0, "it is watched while it is written")

			b = foreignBench(t, url, stream)
			b.Resolve = &Resolve{Schema: plan}
			answer, err = b.ask("resolve")
			require.NoError(t, err)
			require.Equal(t, map[string]any{"plan": "swap"}, answer.Value)

			_, err = foreignBench(t, url, stream).ask("refuse")
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, errorkind.Quota, e.Kind)
			require.NotContains(t, err.Error(), "sk-fake")

			_, err = foreignBench(t, url, stream).ask("nothing has this name")
			require.ErrorAs(t, err, &e)
		})
	}
	_, err := foreignBench(t, url, true).ask("cut")
	var e *llm.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, []errorkind.Kind{llm.StreamCut, llm.Network}, e.Kind, "nothing of a cut stream is an answer")
}

// With random transient faults, the result is unaffected.
func TestForeignEndpointWithFaults(t *testing.T) {
	url := foreigntest.Start(t, "testdata/foreign/fixtures.json", "--chaos-drop", "0.15", "--chaos-malformed", "0.1", "--chaos-disconnect", "0.1", "--chaos-ratelimit", "0.1")
	for range 25 {
		answer, err := foreignBench(t, url, rand.IntN(2) == 0).ask("chaos")
		if err != nil { // five consecutive faults are possible
			require.True(t, strings.Contains(err.Error(), "tried"), err)
			continue
		}
		require.Contains(t, answer.Text, "at last")
	}
}
