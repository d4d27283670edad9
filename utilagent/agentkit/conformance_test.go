package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/modelcall"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// The same tests run in this process and in a separate one: the test binary with this variable acts as an
// agent.
const beAgent = "AGENTKIT_TEST_AGENT"

func TestMain(m *testing.M) {
	if modelcall.Called(os.Args[1:]) {
		beModel()
		return
	}
	if name := os.Getenv(beAgent); name != "" {
		agentkit.Run(agents()[name])
	}
	tmpfstest.Main(prosetest.Of(m))
}

const (
	good  = "---\n$status: done\nsummary: it works\n---\n\nThe work."
	wrong = "---\n$status: maybe\n---\n\nThe work."
)

func answer(text string) roles.Func {
	return func(context.Context, *agentkit.Request) (agentkit.Result, error) {
		return agentkit.Result{Output: text, SessionID: "s1", Usage: &protocol.Usage{Turns: 1, OutputTokens: 10}}, nil
	}
}

// beModel acts as the program that sends requests to models. The model knows only answers that are sure.
func beModel() {
	var r modelcall.Request
	if json.NewDecoder(os.Stdin).Decode(&r) != nil {
		os.Exit(1)
	}
	reply := modelcall.Reply{Text: `{"$status": "done", "summary": "by ` + r.Endpoint.Model + `"}`, Usage: protocol.Usage{InputTokens: 100}}
	if strings.Contains(r.User, "not sure") {
		reply.Text = "null"
	}
	_ = json.NewEncoder(os.Stdout).Encode(reply)
}

// corrections answers the n-th Continue with the n-th text, each in a new session.
func corrections(texts ...string) func(context.Context, string, string, *agentkit.Request) (agentkit.Result, error) {
	n := 0
	return func(_ context.Context, session, message string, _ *agentkit.Request) (agentkit.Result, error) {
		n++
		if want := fmt.Sprintf("s%d", n); session != want {
			return agentkit.Result{}, fmt.Errorf("session %s, want %s", session, want)
		}
		return agentkit.Result{
			Output: texts[n-1], SessionID: fmt.Sprintf("s%d", n+1), Usage: &protocol.Usage{Turns: 2, OutputTokens: 5},
		}, nil
	}
}

// agents returns new agents, because their Continue may count calls.
func agents() map[string]agentkit.Options {
	return map[string]agentkit.Options{
		"plain":   {Name: "plain", Run: answer(good)},
		"invalid": {Name: "invalid", Run: answer(wrong)},
		"fixes":   {Name: "uwf-fixes", Run: answer(wrong), Continue: corrections("no block", good)},
		"never":   {Name: "never", Run: answer(wrong), Continue: corrections("no block", wrong)},
		"breaks": {Name: "breaks", Run: answer(wrong), Continue: func(context.Context, string, string, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Usage: &protocol.Usage{OutputTokens: 7}}, errors.New("connection reset")
		}},
		"fails": {Name: "fails", Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{SessionID: "s", Usage: &protocol.Usage{InputTokens: 9}}, errors.New("no route to host")
		}},
		"panics": {Name: "panics", Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) { panic("oh no") }},
		"nosession": {Name: "nosession", Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Output: good}, nil
		}},
		"suspends": {Name: "suspends", Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Suspend: "which branch?", SessionID: "s"}, nil
		}},
		"asks": {Name: "asks", Run: answer("---\n$status: $SUSPEND\nreason: \"a: b\"\n---\n")},
		"value": {Name: "value", Structured: true, Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Value: struct {
				Status string `json:"$status"`
			}{"done"}, SessionID: "s"}, nil
		}},
		"badvalue": {
			Name: "badvalue", Structured: true,
			Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
				return agentkit.Result{Value: map[string]any{"$status": 1}, SessionID: "s"}, nil
			},
			Continue: func(_ context.Context, _, message string, _ *agentkit.Request) (agentkit.Result, error) {
				return agentkit.Result{Value: map[string]any{"$status": "done", "summary": message}, SessionID: "s"}, nil
			},
		},
		"talks":    {Name: "talks", Run: talks},
		"returns":  {Name: "returns", Run: returns, Continue: corrections(good)},
		"dirty":    {Name: "dirty", Run: answer("---\n$status: done\nsummary: \"a\xffb\"\n---\nbody \xff")},
		"extracts": {Name: "extracts", Run: answer("I am done.")},
		"invents":  {Name: "invents", Run: answer("I am not sure.")},
		"args": {Name: "args", Version: "v1.2.3", Usage: "Own: --file FILE", ParseArgs: func(args []string) ([]string, error) {
			if len(args) > 1 && args[0] == "--file" {
				return args[2:], nil
			}
			return args, nil
		}, Run: answer(good)},
		"noise": {Name: "noise", Run: func(ctx context.Context, _ *agentkit.Request) (agentkit.Result, error) {
			fmt.Fprint(runenv.Of(ctx).Env.Stdout, "loading…\nno line feed")
			return agentkit.Result{Output: good, SessionID: "s"}, nil
		}},
		"waits":  {Name: "waits", Run: waits},
		"spawns": {Name: "spawns", Run: spawns},
		"tells": {Name: "tells", Run: func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Output: "---\n$status: done\n---\n" + req.Prompt, SessionID: "s"}, nil
		}},
	}
}

// talks records its turns one by one.
func talks(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
	raw, err := runenv.Of(ctx).Text(ctx, `{"messages":[]}`)
	if err != nil {
		return agentkit.Result{}, err
	}
	for _, t := range []protocol.Turn{
		{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: "1", Name: "ls", Args: map[string]any{"path": "."}}}},
		{Role: protocol.TurnTool, ToolCallID: "1", Content: "main.go"},
		{Role: protocol.TurnAssistant, Content: good},
	} {
		if err := req.Turn(ctx, t); err != nil {
			return agentkit.Result{}, err
		}
	}
	return agentkit.Result{Output: good, SessionID: "s", Detail: &protocol.Detail{
		Model: "m1", AgentVersion: "9", Outcome: "stop", Requests: []protocol.Hash{raw},
	}}, nil
}

// returns returns its turns at the end, and has to be corrected.
func returns(context.Context, *agentkit.Request) (agentkit.Result, error) {
	return agentkit.Result{Output: wrong, SessionID: "s1", Detail: &protocol.Detail{Model: "m1"}, Turns: []protocol.Turn{
		{Role: protocol.TurnTool, Content: "main.go"}, {Role: protocol.TurnAssistant, Content: wrong},
	}}, nil
}

// waits records that it works, and works until it is stopped.
func waits(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
	if _, err := runenv.Of(ctx).Env.Stdout.Write([]byte("working\n")); err != nil {
		return agentkit.Result{}, err
	}
	<-ctx.Done()
	return agentkit.Result{}, context.Cause(ctx)
}

// spawns leaves a process behind.
func spawns(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		return agentkit.Result{}, err
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	if err := os.WriteFile(filepath.Join(req.RunDir, "pid"), []byte(pid), 0o600); err != nil {
		return agentkit.Result{}, err
	}
	return agentkit.Result{Output: good, SessionID: "s"}, nil
}

// everywhere runs a test in this process and as a process.
func everywhere(t *testing.T, name string, agent string, s agentkittest.Scenario, check func(*testing.T, *agentkittest.Outcome)) {
	t.Run(name+"/in process", func(t *testing.T) {
		t.Parallel()
		check(t, agentkittest.Run(t, agents()[agent], s))
	})
	t.Run(name+"/as a process", func(t *testing.T) {
		t.Parallel()
		check(t, agentkittest.New(t, s).Play(func(e agentkit.Process) int {
			cmd := command(t, agent, e)
			_ = cmd.Run() // the exit status is checked instead
			return cmd.ProcessState.ExitCode()
		}))
	})
}

func command(t *testing.T, agent string, e agentkit.Process) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, e.Args...)
	cmd.Env = append(e.Environ, beAgent+"="+agent, protocol.EnvBin+"="+exe)
	cmd.Dir, cmd.Stdout, cmd.Stderr = e.Dir, e.Stdout, e.Stderr
	return cmd
}
