package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/roles"
)

func spy(run roles.Func, look func(*agentkit.Request)) roles.Func {
	return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		look(req)
		return run(ctx, req)
	}
}

func twoRoles() protocol.Workflow {
	return protocol.Workflow{
		Name: "two", Graph: map[string]protocol.GraphNode{},
		Roles: map[string]protocol.Role{"worker": {Description: "Works."}, "reviewer": {Description: "Reviews."}},
	}
}

// resuming is an agent that continues its sessions and records its requests.
func resuming(name, output string, seen *agentkit.Request) agentkit.Options {
	return agentkit.Options{Name: name, Resumes: true, Run: func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
		*seen = *req
		return agentkit.Result{Output: output, SessionID: fmt.Sprintf("session-%d", req.Number)}, nil
	}}
}

func TestARoleThatComesBackContinuesItsSession(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{Task: "The task."})
	var req agentkit.Request
	a := resuming("a", good, &req)

	th.Run(a).Succeeded()
	require.Empty(t, req.SessionID)
	require.Contains(t, req.Prompt, "## Task")

	th.Run(a).Succeeded()
	require.Equal(t, "session-1", req.SessionID)
	require.False(t, req.Fork)
	prosetest.Text(t, req.Prompt, "the session knows its own step")
	require.NotContains(t, req.Prompt, "## Task")

	got := th.Run(resuming("b", good, &req)).Succeeded()
	require.Empty(t, req.SessionID, "sessions are never given to another agent")
	require.Contains(t, got.Prompt, "## Task")

	th.Run(a).Succeeded()
	require.Empty(t, req.SessionID, "another agent has had the role's last turn")
}

func TestOnlyNewEventsAreReported(t *testing.T) {
	t.Parallel()
	w := twoRoles()
	th := agentkittest.New(t, scenario{Workflow: &w})
	var req agentkit.Request
	a := resuming("a", good, &req)
	th.Run(a).Succeeded()
	th.Precede(agentkittest.History{Role: "reviewer", Content: "Rejected."})
	th.Run(a).Succeeded()
	require.Equal(t, "session-1", req.SessionID)
	prosetest.Text(t, req.Prompt)
	require.Contains(t, req.Prompt, "Rejected.")
}

func TestStartOverSendsEverything(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{Task: "The task."})
	var req agentkit.Request
	a := resuming("a", good, &req)
	th.Run(a).Succeeded()
	a.Run = func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		require.NotEmpty(t, req.SessionID)
		require.NoError(t, req.StartOver(ctx, "it is gone"))
		require.Empty(t, req.SessionID)
		return agentkit.Result{Output: good, SessionID: "new"}, nil
	}
	got := th.Run(a).Succeeded()
	require.Contains(t, got.Prompt, "## Task\n\nThe task.", "what is recorded is what the agent was told")
	require.Contains(t, got.Prompt, "### Step 1: worker")
}

// If only the form of an answer is wrong, the work is done: the next try continues from there, once.
func TestARejectedAnswerIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{})
	var req agentkit.Request
	th.Run(resuming("a", wrong, &req)).Failed("status")
	th.Run(resuming("a", wrong, &req)).Failed("status")
	require.Equal(t, "session-1", req.SessionID)
	prosetest.Text(t, req.Prompt)
	require.Contains(t, req.Prompt, "status")
	th.Run(resuming("a", good, &req)).Succeeded()
	require.Empty(t, req.SessionID, "a session that failed twice is left alone")
}

func TestForks(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{})
	var req agentkit.Request
	a := resuming("a", good, &req)
	th.Run(a).Succeeded()
	th.Fork().Run(a).Succeeded()
	require.Empty(t, req.SessionID, "two threads must not write to one session")
	a.ForksSessions = true
	th.Fork().Run(a).Succeeded()
	require.Equal(t, "session-1", req.SessionID)
	require.True(t, req.Fork)
}

func TestResumeCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{Config: "agents: { a: { command: uwf-a, resume: false } }\n"})
	var req agentkit.Request
	a := resuming("a", good, &req)
	th.Run(a).Succeeded()
	th.Run(a).Succeeded()
	require.Empty(t, req.SessionID)
}

func TestDamagedSessionFileCostsOnlyTheSession(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{})
	var req agentkit.Request
	a := resuming("a", good, &req)
	th.Run(a).Succeeded()
	files, err := filepath.Glob(filepath.Join(th.Home, "sessions", "uwf-a", "records", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte(`{"agent":`), 0o600))
	got := th.Run(a).Succeeded()
	require.Empty(t, req.SessionID)
	prosetest.Text(t, got.Detail.Outcome)
}

// Concurrent steps of different threads must not lose each other's sessions.
func TestSessionsOfManyThreadsAtOnce(t *testing.T) {
	t.Parallel()
	first := agentkittest.New(t, scenario{})
	threads := []*agentkittest.Thread{first}
	for range 7 {
		threads = append(threads, first.Fork())
	}
	var wg sync.WaitGroup
	errs := make(chan error, len(threads))
	for _, th := range threads {
		wg.Go(func() {
			var req agentkit.Request
			a := resuming("a", good, &req)
			run := a.Run
			a.Run = func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
				res, err := run(ctx, req)
				res.SessionID += " of " + req.Thread
				return res, err
			}
			th.Run(a).Succeeded()
			th.Run(a).Succeeded()
			if req.SessionID != "session-1 of "+th.ID {
				errs <- errors.New("lost the session of " + th.ID)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}
