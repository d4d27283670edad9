package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
	"github.com/united-workforce/uwf/utilagent/internal/nodestest"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// asAgent makes this test binary the agent.
const asAgent = "UWF_BUILTIN_TEST_AGENT"

func TestMain(m *testing.M) {
	// A command is confined by the program that started it, here by this test binary. Without Dispatch it
	// would run all tests again, and those their commands.
	if status, dispatched := bind.Dispatch(os.Args[1:], os.Environ(), os.Stderr); dispatched {
		os.Exit(status)
	}
	if os.Getenv(asAgent) != "" {
		agentkit.Run(Options(dump()))
	}
	os.Exit(prosetest.Run(m))
}

// dump is a tool without bounds: 10 MB of binary data.
func dump() tools.Tool {
	return tools.New(tools.Spec{Name: "dump", Description: "Dump everything."}, func(context.Context, struct{}) (string, error) {
		return strings.Repeat("\xff", 10<<20), nil
	})
}

// process runs the agent in a separate process until it ends or is killed.
func process(ctx context.Context, t *testing.T) func(agentkit.Process) int {
	return func(e agentkit.Process) int {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(ctx, self, e.Args...) // cancelling ctx kills it
		cmd.Dir, cmd.Env = e.Dir, append(e.Environ, asAgent+"=1")
		cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
		if cmd.Run() == nil {
			return 0
		}
		return max(cmd.ProcessState.ExitCode(), 1)
	}
}

// An agent killed while the model writes leaves its turns and the unfinished one; the next process continues
// the conversation.
func TestKilledInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	wrote := make(chan struct{})
	e := &endpoint{}
	var once sync.Once
	script := &endpoint{replies: []reply{
		call("write_file", `{"path":"a.txt","content":"one"}`), call("read_file", `{"path":"a.txt"}`), {}, say(done),
	}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if script.count() != 2 {
			script.answer(w, r)
			return
		}
		hang(w, r, script, func() { once.Do(func() { close(wrote) }) })
	}))
	t.Cleanup(e.Close)

	th := agentkittest.New(t, e.scenario(""))
	go func() {
		<-wrote
		waitForWriting(t, th) // kill only after the unfinished turn is visible
		kill()
	}()
	got := th.Play(process(ctx, t))
	require.NotZero(t, got.ExitCode)
	require.Len(t, got.Announced, 4, "turns that happened are nodes")
	require.Contains(t, half(t, th, got), "Half of the answer.", "and so is the one that was being written")

	got = th.Play(process(t.Context(), t)).Succeeded()
	last := script.messages(t, 3)
	require.Len(t, last, 7, "system, user, two calls with their results, and the task again")
	require.Contains(t, last[3], "Wrote")
	require.Contains(t, last[5], "one")
	prosetest.Text(t, last[6])
	prosetest.Text(t, requests(t, th, got)[0])
	var roles []string
	for _, turn := range got.Turns {
		roles = append(roles, string(turn.Role))
	}
	require.Equal(t, "assistant tool assistant tool user assistant", strings.Join(roles, " "), "the step has all that led to it")
	require.Equal(t, 3, got.Step.Usage.Turns, "and all that it cost")
}

// hang sends half a stream and then only keep-alives.
func hang(w http.ResponseWriter, r *http.Request, asked *endpoint, written func()) {
	body, _ := io.ReadAll(r.Body)
	asked.mu.Lock()
	asked.asked = append(asked.asked, string(body))
	asked.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Half of the answer. "}}]}`+"\n\n"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		written()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// waitForWriting waits until the store contains the node of an unfinished turn.
func waitForWriting(t *testing.T, th *agentkittest.Thread) {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		for h, err := range nodestest.Of(t, th).All(t.Context(), "") {
			if err != nil {
				break
			}
			turn, err := cas.Read[protocol.Turn](t.Context(), nodestest.Of(t, th), h)
			if err == nil && strings.HasPrefix(turn.Content, "Half of the answer") {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// half returns the last unfinished turn that an agent announced.
func half(t *testing.T, th *agentkittest.Thread, got *agentkittest.Outcome) string {
	t.Helper()
	found := ""
	for line := range strings.Lines(got.Stdout) {
		var l protocol.TurnLine
		if json.Unmarshal([]byte(line), &l) == nil && l.UWF == "writing" {
			turn, err := cas.Read[protocol.Turn](t.Context(), nodestest.Of(t, th), l.Hash)
			require.NoError(t, err)
			found = turn.Content
		}
	}
	return found
}

func text(t *testing.T, th *agentkittest.Thread, h protocol.Hash) string {
	t.Helper()
	s, err := cas.Read[protocol.Text](t.Context(), nodestest.Of(t, th), h)
	require.NoError(t, err)
	return string(s)
}
