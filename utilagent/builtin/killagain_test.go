package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// However often and wherever an agent is killed, finished work is not requested again, and the step contains
// all of it.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const files = 12
	var mu sync.Mutex
	var asked []int
	e := &endpoint{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		var body struct {
			Messages []struct {
				Role, Content string
				ToolCalls     []any `json:"tool_calls"`
			}
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			return // killed during its request
		}
		next, open := 0, 0
		for _, m := range body.Messages {
			if m.Role == "tool" {
				open--
			} else if open != 0 {
				t.Errorf("%d calls are not answered", open)
			}
			open += len(m.ToolCalls)
			if m.Role == "tool" && strings.Contains(m.Content, fmt.Sprintf(" f%d: 1 lines", next)) { // written or replaced
				next++
			}
		}
		mu.Lock()
		asked = append(asked, next)
		mu.Unlock()
		answer := say(done)
		if next < files {
			answer = call("write_file", fmt.Sprintf(`{"path":"f%d","content":"text"}`, next))
		}
		(&endpoint{replies: []reply{answer}}).answer(w, r)
	}))
	var open atomic.Int32
	e.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	e.Start()
	t.Cleanup(e.Close)
	// quiet waits until a killed process's requests are answered: earlier requests are handled before this
	// one.
	quiet := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL, nil)
		require.NoError(t, err)
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Eventually(t, func() bool { return open.Load() == 0 }, time.Minute, time.Millisecond)
	}

	th := agentkittest.New(t, e.scenario(""))
	random := rand.New(rand.NewPCG(4, 2))
	var last *agentkittest.Outcome
	kills := 0
	for ; kills < 20; kills++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10+random.IntN(60))*time.Millisecond)
		last = th.Play(process(ctx, t))
		cancel()
		if last.ExitCode == 0 {
			break
		}
		if made, ok := step.KeptResult(th.RunDir); ok { // killed after its step, which the engine adopts
			last = th.Play(func(e agentkit.Process) int {
				require.NoError(t, json.NewEncoder(e.Stdout).Encode(made))
				return 0
			})
			break
		}
		quiet()
	}
	got := last
	if got.ExitCode != 0 {
		got = th.Play(process(t.Context(), t))
	}
	got.Succeeded()
	var wrote []string
	for _, turn := range got.Turns {
		if strings.Contains(turn.Content, ": 1 lines") {
			wrote = append(wrote, turn.Content)
		}
	}
	require.GreaterOrEqual(t, len(wrote), files)
	for i := 1; i < len(asked); i++ {
		require.GreaterOrEqual(t, asked[i], asked[i-1], "%v", asked)
	}
	t.Logf("killed %d times; the files that were there when it asked: %v", kills, asked)
}

// An agent killed between the final answer and the step makes the step without another request.
func TestKilledBeforeTheStep(t *testing.T) {
	t.Parallel()
	e := serve(t, call("list_dir", `{}`), say(done))
	th := agentkittest.New(t, e.scenario(""))
	full := Options()
	full.Run = func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		if _, err := Options().Run(ctx, req); err != nil {
			return agentkit.Result{}, err
		}
		return agentkit.Result{}, errors.New("the disk is full")
	}
	th.Run(full).Failed("the disk is full")
	got := th.Run(Options()).Succeeded()
	require.Equal(t, 2, e.count())
	require.Equal(t, map[string]any{"$status": "done", "summary": "it works"}, got.Output)
	require.Equal(t, 2, got.Step.Usage.Turns)
	require.Len(t, got.Turns, 3)
}

// An agent killed while the model writes a summary has removed nothing: the next process requests another
// one. The step contains everything, including the summary's cost.
func TestKilledWhileRoomIsMade(t *testing.T) {
	t.Parallel()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var mu sync.Mutex
	looks, summaries := 0, 0
	var last string
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		last = string(body)
		asksSummary := strings.Contains(last, "This conversation is about to fill your window")
		answer := reply{text: done, free: true}
		switch {
		case asksSummary && summaries == 0:
			summaries++
			kill()
			<-r.Context().Done()
			return
		case asksSummary:
			summaries++
			answer.text = "The door is green."
		case looks < 12:
			answer = reply{calls: []string{"read_file", fmt.Sprintf(`{"path":"long.txt","offset":%d}`, looks+1)}, free: true}
			looks++
		}
		(&endpoint{replies: []reply{answer}}).answer(w, r)
	}))
	t.Cleanup(e.Close)
	s := e.scenario("")
	s.Config = strings.Replace(s.Config, "name: main-model", "name: main-model, contextWindow: 8000", 1)
	th := agentkittest.New(t, s)
	require.NoError(t, os.WriteFile(filepath.Join(th.Cwd, "long.txt"), []byte(strings.Repeat("a line of a long text\n", 2000)), 0o600))

	got := th.Play(process(ctx, t))
	require.NotZero(t, got.ExitCode)
	before := len(got.Announced)
	require.Positive(t, before)
	got = th.Play(process(t.Context(), t)).Succeeded()
	require.GreaterOrEqual(t, summaries, 2)
	require.Contains(t, last, "The door is green.")
	require.Contains(t, last, "Do the work.", "the task stays")
	results := 0
	for _, turn := range got.Turns {
		if turn.Role == protocol.TurnTool {
			results++
			prosetest.Text(t, turn.Content)
		}
	}
	require.Equal(t, 12, results, "what was left out of the conversation is part of the step")
	require.Equal(t, done, got.Content)
	told := strings.Join(requests(t, th, got), "\n")
	prosetest.Text(t, told)
}
