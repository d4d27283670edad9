package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/nodestest"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/internal/sessions"
)

// A try without an answer is continued once.
func TestInterruptedTryContinues(t *testing.T) {
	t.Parallel()
	var seen []agentkit.Request
	broken := errors.New("the endpoint is gone")
	fail := true
	a := agentkit.Options{Name: "a", Resumes: true, Run: func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
		seen = append(seen, *req)
		req.RecordSession("session")
		if fail {
			return agentkit.Result{SessionID: "session"}, broken
		}
		return agentkit.Result{Output: good, SessionID: "session"}, nil
	}}
	th := agentkittest.New(t, scenario{Task: "The task."})
	for range 3 {
		th.Run(a).Failed("the endpoint is gone")
	}
	fail = false
	th.Run(a).Succeeded()
	th.Run(a).Succeeded()
	var got []string
	for _, req := range seen {
		got = append(got, req.SessionID+map[bool]string{true: " interrupted"}[req.Interrupted])
	}
	require.Equal(t, []string{"", "session interrupted", "", "session interrupted", "session"}, got)
	require.NotContains(t, seen[1].Prompt, "## Task")
}

// Another instruction at the same head is another task.
func TestInterruptedTryOfAnotherTask(t *testing.T) {
	t.Parallel()
	var req agentkit.Request
	a := resuming("a", good, &req)
	th := agentkittest.New(t, scenario{})
	th.Run(agentkit.Options{Name: "a", Resumes: true, Run: func(_ context.Context, r *agentkit.Request) (agentkit.Result, error) {
		r.RecordSession("session")
		return agentkit.Result{}, errors.New("killed")
	}}).Failed("killed")
	e := th.Process()
	e.Args = []string{protocol.FlagThread, th.ID, protocol.FlagRole, th.Role, protocol.FlagPrompt, "Something else."}
	agentkit.Main(t.Context(), e, a)
	require.Empty(t, req.SessionID)
	require.False(t, req.Interrupted)
}

func TestSecretsAreHiddenEverywhere(t *testing.T) {
	t.Parallel()
	const secret = "sk-0123456789"
	run := func(output any, err error) agentkit.Options {
		return agentkit.Options{Name: "a", Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			req.Hide(secret, "short")
			told := protocol.Turn{Role: protocol.TurnAssistant, Content: "a " + secret, Reasoning: secret,
				ToolCalls: []protocol.ToolCall{{ID: "1", Name: "x", Args: map[string]any{"list": []any{secret}}}}}
			require.NoError(t, req.Turn(ctx, told))
			require.NoError(t, req.Writing(ctx, told))
			h, failed := runenv.Of(ctx).Text(ctx, "asked with "+secret)
			require.NoError(t, failed)
			res := agentkit.Result{SessionID: "s", Detail: &protocol.Detail{Requests: []protocol.Hash{h}}, Value: output}
			if output == nil {
				res.Suspend = "need " + secret
			}
			return res, err
		}}
	}
	for name, o := range map[string]agentkit.Options{
		"output":  run(map[string]any{"$status": "done", "summary": secret + " and short"}, nil),
		"suspend": run(nil, nil),
		"invalid": run(map[string]any{"$status": secret}, nil),
		"error":   run(nil, errors.New("refused "+secret)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			th := agentkittest.New(t, scenario{Task: "task", EdgePrompt: "use " + secret})
			got := th.Run(o)
			require.NotContains(t, got.Stdout+got.Stderr, secret)
			require.NotContains(t, got.Raw, secret)
			if name == "output" {
				require.Equal(t, "[hidden key] and short", got.Output.(map[string]any)["summary"])
			}
			if got.Result.StepHash == "" {
				return
			}
			// The edge's text and the thread's come from the engine.
			for n, err := range graph.Walk(t.Context(), nodestest.Of(t, th), []cas.Hash{got.Step.Output, got.Step.Detail, *got.Step.Prompt}, graph.WalkOptions{}) {
				require.NoError(t, err)
				require.NotContains(t, string(n.Payload), secret)
			}
			require.NotContains(t, got.Step.EdgePrompt, secret)
		})
	}
}

// An unfinished turn is visible, and not part of the step.
func TestWriting(t *testing.T) {
	t.Parallel()
	a := agentkit.Options{Name: "a", Structured: true, Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		for _, text := range []string{"Ha", "Half do"} {
			require.NoError(t, req.Writing(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: text}))
		}
		err := req.Turn(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: "Half done."})
		return agentkit.Result{Value: map[string]any{"$status": "done"}, SessionID: "s"}, err
	}}
	th := agentkittest.New(t, scenario{})
	got := th.Run(a).Succeeded()
	require.Len(t, got.Turns, 1)
	require.Len(t, got.Announced, 1)
	var seen []string
	for line := range strings.Lines(got.Stdout) {
		var l protocol.TurnLine
		if json.Unmarshal([]byte(line), &l) != nil || l.UWF != "writing" {
			continue
		}
		turn, err := cas.Read[protocol.Turn](t.Context(), nodestest.Of(t, th), l.Hash)
		require.NoError(t, err)
		require.Zero(t, turn.Index)
		seen = append(seen, turn.Content)
	}
	require.Equal(t, []string{"Ha", "Half do"}, seen)
}

// The session is marked as changed before the program can change it.
func TestEntered(t *testing.T) {
	t.Parallel()
	for _, enters := range []bool{false, true} {
		th, visits := agentkittest.New(t, scenario{}), 0
		a := agentkit.Options{Name: "a", Resumes: true, Enters: enters, Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			run := runenv.Of(ctx)
			if enters {
				require.NoError(t, run.Entered())
			}
			var known struct{ Try any }
			found, err := sessions.Of(run.Dirs, "a").Get("session", sessions.Kit, &known)
			require.NoError(t, err)
			require.Equal(t, visits > 0, found)
			require.Equal(t, visits > 0, known.Try != nil)
			visits++
			return agentkit.Result{Output: good, SessionID: "session"}, nil
		}}
		th.Run(a).Succeeded()
		th.Run(a).Succeeded()
		require.Equal(t, 2, visits)
	}
}
