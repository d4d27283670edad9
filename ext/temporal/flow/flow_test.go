package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/united-workforce/uwf/protocol"
)

// script is a stepper that answers with a function and records the requests.
type script struct {
	mu     sync.Mutex
	asked  []Request
	queues []string
	answer func(n int, r Request) (Outcome, error) // n from 0
}

func (s *script) Step(_ context.Context, r Request, queue string) (Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.queues = append(s.asked, r), append(s.queues, queue)
	return s.answer(len(s.asked)-1, r)
}

// play runs a thread in the SDK's test environment, which skips time.
func play(t *testing.T, thread Thread, answer func(n int, r Request) (Outcome, error), prepare ...func(*testsuite.TestWorkflowEnvironment)) (*script, *testsuite.TestWorkflowEnvironment) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	e := suite.NewTestWorkflowEnvironment()
	e.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // for a busy machine
	s := &script{answer: answer}
	Register(e, Steps{Stepper: s})
	for _, p := range prepare {
		p(e)
	}
	e.ExecuteWorkflow(Name, thread)
	require.True(t, e.IsWorkflowCompleted())
	return s, e
}

func hash(n int) protocol.Hash { return protocol.Hash(fmt.Sprintf("%013d", n)) }

// steps answers with idle until n steps were made, then with completed.
func steps(n int) func(int, Request) (Outcome, error) {
	return func(i int, _ Request) (Outcome, error) {
		out := Outcome{Head: hash(i + 1), Status: protocol.StatusIdle, Made: true}
		if i+1 == n {
			out.Status = protocol.StatusCompleted
		}
		return out, nil
	}
}

func result(t *testing.T, e *testsuite.TestWorkflowEnvironment) Ended {
	t.Helper()
	require.NoError(t, e.GetWorkflowError())
	var ended Ended
	require.NoError(t, e.GetWorkflowResult(&ended))
	return ended
}

func TestStepsFollowTheHead(t *testing.T) {
	t.Parallel()
	s, e := play(t, Thread{Remote: "team", Thread: "A", Head: hash(0)}, steps(5))
	require.Equal(t, Ended{hash(5), protocol.StatusCompleted, 5}, result(t, e))
	for i, r := range s.asked {
		require.Equal(t, Request{Remote: "team", Thread: "A", Expect: hash(i)}, r)
	}
}

func TestHistoriesStayShort(t *testing.T) {
	t.Parallel()
	s, e := play(t, Thread{Remote: "team", Thread: "A", Head: hash(0)}, steps(perRun+1))
	again, ok := errors.AsType[*workflow.ContinueAsNewError](e.GetWorkflowError())
	require.True(t, ok, "%v", e.GetWorkflowError())
	require.Equal(t, Name, again.WorkflowType.Name)
	require.Len(t, s.asked, perRun)
}

// A failure of an agent is reported at once; other failures are retried until they are over.
func TestRetried(t *testing.T) {
	t.Parallel()
	end := steps(1)
	s, e := play(t, Thread{Thread: "A"}, func(n int, r Request) (Outcome, error) {
		if n < 6 {
			return Outcome{}, errors.New("no route to the remote")
		}
		return end(0, r)
	})
	require.Equal(t, protocol.StatusCompleted, result(t, e).Status)
	require.Len(t, s.asked, 7)

	for _, kind := range []string{Failed, Budget, Broken} {
		s, e = play(t, Thread{Thread: "A"}, func(int, Request) (Outcome, error) {
			return Outcome{}, &StuckError{Type: kind, Message: "thread A: see uwf thread show A --remote team"}
		})
		failed, ok := errors.AsType[*temporal.ApplicationError](e.GetWorkflowError())
		require.True(t, ok)
		require.Equal(t, kind, failed.Type())
		require.Equal(t, "thread A: see uwf thread show A --remote team", failed.Message())
		require.True(t, failed.NonRetryable())
		require.Len(t, s.asked, 1)
	}
}

func TestAPersonIsWaitedFor(t *testing.T) {
	t.Parallel()
	answered := false
	ask := func(n int, r Request) (Outcome, error) {
		if !answered {
			return Outcome{Head: hash(1), Status: protocol.StatusSuspended}, nil
		}
		return Outcome{Head: hash(2), Status: protocol.StatusCompleted, Made: true}, nil
	}
	t.Run("and wakes it", func(t *testing.T) {
		s, e := play(t, Thread{Thread: "A"}, ask, func(e *testsuite.TestWorkflowEnvironment) {
			e.RegisterDelayedCallback(func() { answered = true; e.SignalWorkflow(Changed, nil) }, 10*time.Second)
		})
		require.Equal(t, protocol.StatusCompleted, result(t, e).Status)
		require.Len(t, s.asked, 2, "it was not looked at in between")
	})
	t.Run("or is found by a look", func(t *testing.T) {
		answered = false
		s, e := play(t, Thread{Thread: "A"}, ask, func(e *testsuite.TestWorkflowEnvironment) {
			e.RegisterDelayedCallback(func() { answered = true }, 24*time.Hour)
		})
		require.Equal(t, protocol.StatusCompleted, result(t, e).Status)
		require.Less(t, len(s.asked), 60, "seldom, in the end")
	})
}

func TestAParkedThreadIsATimer(t *testing.T) {
	t.Parallel()
	var start time.Time
	_, e := play(t, Thread{Thread: "A"}, func(n int, _ Request) (Outcome, error) {
		if n == 0 {
			return Outcome{Status: protocol.StatusRateLimited, Until: start.Add(3 * time.Hour).UnixMilli()}, nil
		}
		return Outcome{Status: protocol.StatusCompleted}, nil
	}, func(e *testsuite.TestWorkflowEnvironment) { start = e.Now() })
	require.Equal(t, protocol.StatusCompleted, result(t, e).Status)
	require.WithinDuration(t, start.Add(3*time.Hour), e.Now(), time.Minute)
}

func TestNextStepsGoToTheirQueue(t *testing.T) {
	t.Parallel()
	s, e := play(t, Thread{Thread: "A", Head: hash(0)}, func(n int, _ Request) (Outcome, error) {
		switch n {
		case 0:
			return Outcome{Head: hash(1), Status: protocol.StatusIdle, Queue: "gpu", Routed: true, Made: true}, nil
		case 1:
			return Outcome{Head: hash(2), Status: protocol.StatusIdle, Routed: true, Made: true}, nil
		}
		return Outcome{Head: hash(3), Status: protocol.StatusCompleted, Made: true}, nil
	}, func(e *testsuite.TestWorkflowEnvironment) {
		e.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: "uwf"})
	})
	require.Equal(t, 3, result(t, e).Steps)
	require.Equal(t, []string{"uwf", "gpu", "uwf"}, s.queues)
	require.Equal(t, []bool{false, true, true}, []bool{s.asked[0].Routed, s.asked[1].Routed, s.asked[2].Routed})
}

func TestChildrenAreWorkflows(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	over := map[string]bool{}
	atWork, most := map[string]bool{}, 0
	_, e := play(t, Thread{Remote: "team", Thread: "P"}, func(_ int, r Request) (Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Thread != "P" {
			if !atWork[r.Thread] {
				atWork[r.Thread] = true
				most = max(most, len(atWork))
				return Outcome{Status: protocol.StatusIdle, Made: true}, nil
			}
			delete(atWork, r.Thread)
			over[r.Thread] = true
			return Outcome{Status: protocol.StatusCompleted, Made: true}, nil
		}
		if len(over) == 5 {
			return Outcome{Status: protocol.StatusCompleted, Made: true}, nil
		}
		out := Outcome{Status: protocol.StatusWaitingForChildren, Parallel: 2}
		for _, c := range []string{"a", "b", "c", "d", "e"} {
			out.Children = append(out.Children, Child{c, protocol.StatusIdle})
		}
		return out, nil
	})
	require.Equal(t, protocol.StatusCompleted, result(t, e).Status)
	require.LessOrEqual(t, most, 2)
}

// A child that waits for a person blocks neither the others nor its parent. After an answer it continues
// while the others still run.
func TestAChildThatAsks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answered, asked, over := false, 0, map[string]bool{}
	var expected []protocol.Hash // by the child that asks: a known question isn't news
	_, e := play(t, Thread{Remote: "team", Thread: "P"}, func(_ int, r Request) (Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Thread == "a" {
			expected = append(expected, r.Expect)
		}
		switch {
		case r.Thread == "a" && !answered:
			asked++
			return Outcome{Head: hash(7), Status: protocol.StatusSuspended}, nil
		case r.Thread != "P":
			over[r.Thread] = true
			return Outcome{Status: protocol.StatusCompleted}, nil
		case len(over) == 2:
			return Outcome{Status: protocol.StatusCompleted}, nil
		case over["b"] && !answered:
			return Outcome{Status: protocol.StatusSuspended}, nil
		}
		return Outcome{Status: protocol.StatusWaitingForChildren, Children: []Child{{"a", protocol.StatusIdle}, {"b", protocol.StatusIdle}}, Parallel: 1}, nil
	}, func(e *testsuite.TestWorkflowEnvironment) {
		e.RegisterDelayedCallback(func() {
			mu.Lock()
			answered = true
			mu.Unlock()
			e.SignalWorkflow(Changed, nil)
		}, time.Second*30)
	})
	require.Equal(t, protocol.StatusCompleted, result(t, e).Status)
	require.Equal(t, 1, asked)
	require.Equal(t, []protocol.Hash{"", hash(7)}, expected)
}

func TestFailedChildrenFailTheirParentAfterTheOthers(t *testing.T) {
	t.Parallel()
	s, e := play(t, Thread{Remote: "team", Thread: "P"}, func(_ int, r Request) (Outcome, error) {
		switch r.Thread {
		case "a":
			return Outcome{}, &StuckError{Failed, "thread a"}
		case "P":
			return Outcome{Status: protocol.StatusWaitingForChildren, Children: []Child{{"a", protocol.StatusIdle}, {"b", protocol.StatusIdle}}, Parallel: 1}, nil
		}
		return Outcome{Status: protocol.StatusCompleted}, nil
	})
	failed, ok := errors.AsType[*temporal.ApplicationError](e.GetWorkflowError())
	require.True(t, ok)
	require.Equal(t, Children, failed.Type())
	require.Contains(t, failed.Message(), "1 of 2")
	require.Equal(t, "b", s.asked[len(s.asked)-1].Thread)
}

func TestStopped(t *testing.T) {
	t.Parallel()
	_, e := play(t, Thread{Thread: "A"}, func(int, Request) (Outcome, error) {
		return Outcome{Status: protocol.StatusSuspended}, nil
	}, func(e *testsuite.TestWorkflowEnvironment) { e.RegisterDelayedCallback(e.CancelWorkflow, time.Minute) })
	require.True(t, temporal.IsCanceledError(errors.Unwrap(e.GetWorkflowError())), "%v", e.GetWorkflowError())
}
