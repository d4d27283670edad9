package moderator_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// listed returns a thread whose reviewer answered last and routes by list.
func listed(output any, list ...protocol.Transition) moderator.State {
	s := after("reviewer", output)
	s.Workflow.Graph["reviewer"] = protocol.GraphNode{Transitions: list}
	s.Workflow.Conditions = map[string]protocol.Condition{
		"notApproved": {Expression: "steps[-1].output.approved = false"},
	}
	s.Start.Workflow = "0000000000001"
	s.Depth, s.History = 2, past(
		moderator.HistoryStep{Role: "reviewer", Output: given(output), Detail: "0000000000003", Agent: "uwf-mock"},
		moderator.HistoryStep{Role: "developer", Output: given(obj("summary", "S")), Detail: "0000000000002", Agent: "uwf-mock"})
	return s
}

// past yields steps, the newest first.
func past(steps ...moderator.HistoryStep) iter.Seq2[moderator.HistoryStep, error] {
	return func(yield func(moderator.HistoryStep, error) bool) {
		for _, s := range steps {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// given returns a readable output.
func given(output any) func() (any, error) { return func() (any, error) { return output, nil } }

func when(condition, role, prompt string) protocol.Transition {
	return protocol.Transition{Edge: protocol.Edge{Role: role, Prompt: prompt}, Condition: condition}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	again, end := when("notApproved", "developer", "Mend {{what}}"), when("", "$END", "")
	tests := []struct {
		name  string
		state moderator.State
		want  moderator.Decision
	}{
		{"a named condition that holds", listed(obj("approved", false, "what", "it"), again, end),
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Mend it", Status: "_"}},
		{"the fallback otherwise", listed(obj("approved", true), again, end),
			moderator.Decision{Kind: moderator.End, Status: "_"}},
		{"the first that holds", listed(obj(), when("true", "planner", "1"), when("true", "developer", "2")),
			moderator.Decision{Kind: moderator.Run, Role: "planner", Prompt: "1", Status: "_"}},
		{"a person, and the status that was answered", listed(obj("$status", "odd"), when("meta.`$status` = 'odd'", "$SUSPEND", "{{$status}}?")),
			moderator.Decision{Kind: moderator.Suspend, Role: "reviewer", Prompt: "odd?", Cause: moderator.ByTarget, Status: "odd"}},
		{"what has no value is not true", listed(obj(), when("meta.missing", "planner", "1"), when("$not($exists(meta.missing))", "developer", "2")),
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "2", Status: "_"}},
	}
	for _, expression := range []string{
		"role = 'reviewer' and meta.n = 1 and output.n = 1 and depth = 2",
		"history[0].role = 'developer' and history[0].meta.summary = 'S' and history[-1].meta.n = 1 and $count(history) = 2",
		"steps.role = ['developer', 'reviewer'] and steps[-1].detail = '0000000000003' and steps[0].agent = 'uwf-mock'",
		"start.prompt = 'T' and start.workflow = '0000000000001'",
		"$count($keys($)) = 7",
	} {
		tests = append(tests, struct {
			name  string
			state moderator.State
			want  moderator.Decision
		}{expression, listed(obj("n", 1), when(expression, "$END", ""), when("", "planner", "no")),
			moderator.Decision{Kind: moderator.End, Status: "_"}})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := moderator.Next(t.Context(), tt.state)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestTransitionsAtTheStart(t *testing.T) {
	t.Parallel()
	s := moderator.State{Workflow: flow(), Start: protocol.Start{Prompt: "fix a bug"}}
	s.Workflow.Graph["$START"] = protocol.GraphNode{Transitions: []protocol.Transition{
		when("$contains(start.prompt, 'bug') and depth = 0 and role = null and $count(steps) = 0", "developer", "Fix: {{$prompt}}"),
		when("", "planner", "Plan"),
	}}
	got, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "Fix: fix a bug", got.Prompt)

	got, err = moderator.Resume(t.Context(), s, true, "and more")
	require.NoError(t, err)
	require.Equal(t, "developer", got.Role)
	require.Contains(t, got.Prompt, "and more")
}

func TestNoTransitionApplies(t *testing.T) {
	t.Parallel()
	_, err := moderator.Next(t.Context(), listed(obj("approved", "yes"), when("notApproved", "developer", "x"), when("meta.approved = true", "$END", "")))
	var route *moderator.RouteError
	require.ErrorAs(t, err, &route)
	prosetest.Error(t, err)
}

func TestConditionThatFails(t *testing.T) {
	t.Parallel()
	_, err := moderator.Next(t.Context(), listed(obj("n", "many"), when("meta.n > 3", "developer", "x"), when("", "$END", "")))
	var failed *moderator.EvalError
	require.ErrorAs(t, err, &failed)
	var cause *jsonata.Error
	require.ErrorAs(t, err, &cause)
	require.ErrorContains(t, err, `graph[reviewer][0]: condition (meta.n > 3) failed: 1:8: `)
	prosetest.Error(t, err)
}

// A condition reads only the steps that it can reach, so the cost of a step doesn't grow with its thread.
func TestHistoryIsReadLazily(t *testing.T) {
	t.Parallel()
	const long = 5000
	for expression, want := range map[string]int{
		"meta.approved = true": 0, "depth > 3 and role = 'x'": 0, "start.prompt = 'x'": 0,
		"steps[-1].output.approved = true": 1, "history[-3].meta.x": 3,
		"$count(history[role='x']) > 2": long, "steps[0].role = 'x'": long, "$exists(**.x)": long,
	} {
		s := listed(obj("approved", false), when(expression, "developer", "x"), when("", "$END", ""))
		read := 0
		s.Depth, s.History = long, func(yield func(moderator.HistoryStep, error) bool) {
			for range long {
				if read++; !yield(moderator.HistoryStep{Role: "reviewer", Output: given(obj("approved", false))}, nil) {
					return
				}
			}
		}
		_, err := moderator.Next(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, want, read, expression)
	}
}

func TestHistoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("node is damaged")
	s := listed(obj(), when("$count(steps) > 1", "developer", "x"))
	s.History = func(yield func(moderator.HistoryStep, error) bool) { yield(moderator.HistoryStep{}, broken) }
	_, err := moderator.Next(t.Context(), s)
	require.ErrorIs(t, err, broken)
	s.History = nil
	_, err = moderator.Next(t.Context(), s)
	prosetest.Error(t, err)
}

func TestConditionsAreBounded(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := moderator.Next(t.Context(), listed(obj(), when("$count([1..10000000].[1..10000000]) > 1", "developer", "x")))
	require.ErrorIs(t, err, jsonata.ErrLimit)
	require.Less(t, time.Since(began), time.Minute)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = moderator.Next(ctx, listed(obj(), when("$count([1..1000000][$ % 7 = 1]) > 1", "developer", "x")))
	require.ErrorIs(t, err, context.Canceled)
}

func BenchmarkHistoryOf1000Steps(b *testing.B) {
	var steps []moderator.HistoryStep
	for i := range 1000 {
		steps = append(steps, moderator.HistoryStep{Role: []string{"developer", "reviewer"}[i%2], Output: given(obj("approved", i%3 == 0, "comments", fmt.Sprint("No. ", i)))})
	}
	s := listed(obj("approved", false), when("$count(history[role='reviewer' and meta.approved]) > 10000", "developer", "x"), when("", "$END", ""))
	s.Depth, s.History = len(steps), past(steps...)
	for b.Loop() {
		if _, err := moderator.Next(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConditionOverTheLastOutput(b *testing.B) {
	s := listed(obj("approved", true), when("meta.approved = false", "developer", "x"), when("", "$END", ""))
	for b.Loop() {
		if _, err := moderator.Next(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}
