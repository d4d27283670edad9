package builtin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// An agent with three hundred turns stays within the configured context window, and still knows at the end
// what was decided in its third turn. The endpoint knows only what it is sent, and its summaries contain the
// decisions they find there.
func TestThreeHundredTurns(t *testing.T) {
	t.Parallel()
	const turns, window = 300, 10000
	decided := regexp.MustCompile(`DECIDED [a-z]+`)
	replies, summaries, largest := 0, 0, 0
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		said := ""
		for _, m := range body.Messages {
			said += m.Content + "\n"
		}
		largest = max(largest, len(said)/4)
		known := decided.FindAllString(said, -1)
		slices.Sort(known)
		answer := reply{free: true}
		switch last := body.Messages[len(body.Messages)-1].Content; {
		case strings.Contains(last, "is about to fill your window"):
			summaries++
			answer.text = strings.Join(slices.Compact(known), "\n")
		case replies == turns:
			answer.text = strings.Replace(done, "it works", strings.Join(slices.Compact(known), " and "), 1)
		default:
			replies++
			answer.calls = []string{"read_file", fmt.Sprintf(`{"path":"long.txt","offset":%d,"limit":100}`, replies)}
			if replies == 3 {
				answer.text = "DECIDED green"
			}
		}
		(&endpoint{replies: []reply{answer}}).answer(w, r)
	}))
	t.Cleanup(e.Close)
	s := (&endpoint{Server: e, caches: t.TempDir()}).scenario(fmt.Sprintf("builtin: { maxTurns: %d }", 2*turns))
	s.Config = strings.Replace(s.Config, "name: main-model", fmt.Sprintf("name: main-model, contextWindow: %d", window), 1)
	th := agentkittest.New(t, s)
	require.NoError(t, os.WriteFile(filepath.Join(th.Cwd, "long.txt"), []byte(strings.Repeat("a line of a long text\n", 2000)), 0o600))
	got := th.Run(Options()).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "DECIDED green"}, got.Output)
	require.Greater(t, summaries, 10)
	require.Less(t, largest, window)
	results := 0
	for _, turn := range got.Turns {
		if turn.Role == protocol.TurnTool {
			results++
		}
	}
	require.Equal(t, turns, results, "what was removed is in the store")
}
