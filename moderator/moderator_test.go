package moderator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/prosetest"
)

// flow returns a workflow with three roles, as an author would write it.
func flow() protocol.Workflow {
	return protocol.Workflow{
		Roles: map[string]protocol.Role{
			"planner":   {Description: "Plans the work"},
			"developer": {Description: "Does the work"},
			"reviewer":  {},
		},
		Graph: map[string]protocol.GraphNode{
			"$START": edges("_", protocol.Edge{Role: "planner", Prompt: "Plan: {{$prompt}}"}),
			"planner": edges(
				"ready", protocol.Edge{Role: "developer", Prompt: "Do {{plan}} for {{prompt}}", Location: "{{{dir}}}"},
				"unclear", protocol.Edge{Role: "$SUSPEND", Prompt: "{{question}}"},
				"bare", protocol.Edge{Role: "developer"},
				"silent", protocol.Edge{Role: "reviewer"},
				"waiting", protocol.Edge{Role: "$SUSPEND"},
				"lost", protocol.Edge{Role: "develper"},
			),
			"developer": edges("_", protocol.Edge{Role: "reviewer", Prompt: "Review"}),
			"reviewer":  edges("done", protocol.Edge{Role: "$END"}, "said", protocol.Edge{Role: "$END", Prompt: "{{words}}"}),
		},
	}
}

func edges(pairs ...any) protocol.GraphNode {
	n := protocol.GraphNode{Edges: map[string]protocol.Edge{}}
	for i := 0; i < len(pairs); i += 2 {
		n.Edges[pairs[i].(string)] = pairs[i+1].(protocol.Edge)
	}
	return n
}

// after returns a thread with the prompt "T" and this newest step.
func after(role string, output any) moderator.State {
	return moderator.State{
		Workflow: flow(), Start: protocol.Start{Prompt: "T"},
		Last: &moderator.Last{Role: role, Output: output, Location: "/where/it/ran"},
	}
}

func obj(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func TestNext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		state moderator.State
		want  moderator.Decision
	}{
		{"a new thread", moderator.State{Workflow: flow(), Start: protocol.Start{Prompt: "T"}},
			moderator.Decision{Kind: moderator.Run, Role: "planner", Prompt: "Plan: T", Status: "_"}},
		{"by $status", after("planner", obj("$status", "ready", "plan", "P", "dir", "/d")),
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Do P for T", Location: "/d", Status: "ready"}},
		{"by status if there is no $status", after("planner", obj("status", "ready", "plan", "P", "dir", "/d")),
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Do P for T", Location: "/d", Status: "ready"}},
		{"the output's own prompt field goes before the thread's", after("planner", obj("$status", "ready", "plan", "P", "dir", "/d", "prompt", "own", "$prompt", "forged")),
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Do P for own", Location: "/d", Status: "ready"}},
		{"a single edge _ is taken whatever the status", after("developer", obj("$status", "anything")),
			moderator.Decision{Kind: moderator.Run, Role: "reviewer", Prompt: "Review", Status: "_"}},
		{"an output that is not an object", after("developer", "text"),
			moderator.Decision{Kind: moderator.Run, Role: "reviewer", Prompt: "Review", Status: "_"}},
		{"without a prompt the role's description serves", after("planner", obj("$status", "bare")),
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Does the work", Status: "bare"}},
		{"the end", after("reviewer", obj("$status", "done")),
			moderator.Decision{Kind: moderator.End, Status: "done"}},
		{"the end with words", after("reviewer", obj("$status", "said", "words", "bye")),
			moderator.Decision{Kind: moderator.End, Prompt: "bye", Status: "said"}},
		{"suspended by the graph", after("planner", obj("$status", "unclear", "question", "Which?")),
			moderator.Decision{Kind: moderator.Suspend, Role: "planner", Prompt: "Which?", Cause: moderator.ByTarget, Status: "unclear"}},
		{"suspended by the graph without words", after("planner", obj("$status", "waiting")),
			moderator.Decision{Kind: moderator.Suspend, Role: "planner", Prompt: `"planner" answered "waiting" and waits for a person.`, Cause: moderator.ByTarget, Status: "waiting"}},
		{"suspended by an output that its own schema admits", after("developer", obj("$status", "$SUSPEND", "reason", "no key")),
			moderator.Decision{Kind: moderator.Suspend, Role: "developer", Prompt: "no key", Cause: moderator.ByOutput, Status: "$SUSPEND"}},
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

func TestNextWithoutAnswer(t *testing.T) {
	t.Parallel()
	noStart := moderator.State{}
	suspendAtOnce := moderator.State{Workflow: protocol.Workflow{Graph: map[string]protocol.GraphNode{"$START": edges("_", protocol.Edge{Role: "$SUSPEND"})}}}
	// A stored workflow can have an edge without a role. That of a failure ends the thread, see TestFailures.
	unnamed := moderator.State{Workflow: protocol.Workflow{Graph: map[string]protocol.GraphNode{"$START": edges("_", protocol.Edge{}), "a": edges("_", protocol.Edge{})}}}
	answered := unnamed
	answered.Last = &moderator.Last{Role: "a", Output: obj("error", "none")}
	tests := []struct {
		name  string
		state moderator.State
	}{
		{"a start without a role", unnamed},
		{"an answer without a role", answered},
		{"a status that looks like a typo", after("planner", obj("$status", "redy"))},
		{"no status", after("reviewer", obj("$status", 3))},
		{"a role that the graph forgot", after("revewer", obj())},
		{"an edge that leads nowhere", after("planner", obj("$status", "lost"))},
		{"no beginning", noStart},
		{"nobody to ask yet", suspendAtOnce},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := moderator.Next(t.Context(), tt.state)
			var route *moderator.RouteError
			require.ErrorAs(t, err, &route)
			prosetest.Error(t, err)
		})
	}
}

func TestTemplateErrorsNameEdgeAndTemplate(t *testing.T) {
	t.Parallel()
	_, err := moderator.Next(t.Context(), after("planner", obj("$status", "ready", "plans", "P")))
	var missing *mustache.MissingError
	require.ErrorAs(t, err, &missing)
	prosetest.Error(t, err)

	_, err = moderator.Next(t.Context(), after("planner", obj("$status", "ready", "plan", "P", "dir", " ")))
	require.ErrorIs(t, err, moderator.ErrEmpty)
	prosetest.Error(t, err)

	_, err = moderator.Next(t.Context(), after("reviewer", obj("$status", "said", "words", "\n")))
	require.ErrorIs(t, err, moderator.ErrEmpty, "at the end, too")

	_, err = moderator.Next(t.Context(), after("planner", obj("$status", "silent")))
	require.ErrorIs(t, err, moderator.ErrNoPrompt)
}

func TestSuspendedByTheRoleItself(t *testing.T) {
	t.Parallel()
	s := after("developer", obj())
	s.Last.Suspend = &protocol.Suspend{Status: "$SUSPEND", Reason: "no key"}
	want := moderator.Decision{Kind: moderator.Suspend, Role: "developer", Prompt: "no key", Cause: moderator.ByOutput, Status: "$SUSPEND"}
	got, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, want, got)

	s.Last.Suspend.Reason = " "
	got, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	prosetest.Text(t, got.Prompt)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := after("developer", obj())
	s.Limits = protocol.Limits{MaxSteps: 5, MaxVisitsPerRole: 2}
	s.Steps, s.Visits = 4, map[string]int{"reviewer": 1, "developer": 2}
	got, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.Run, got.Kind, "below both limits")

	s.Steps = 5
	got, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.Decision{Kind: moderator.Suspend, Role: "reviewer", Cause: moderator.ByLimit, Status: "_",
		Prompt: `the limit of 5 steps is reached (maxSteps); next is role "reviewer"; resuming grants as many again`}, got)

	s.Steps, s.Visits["reviewer"] = 4, 2
	got, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	prosetest.Text(t, got.Prompt)

	s.Last = &moderator.Last{Role: "reviewer", Output: obj("$status", "done")}
	s.Steps = 5
	got, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.End, got.Kind, "the end needs no step, so no limit is in its way")
}

func TestResume(t *testing.T) {
	t.Parallel()
	byOutput := after("developer", obj())
	byOutput.Last.Suspend = &protocol.Suspend{Status: "$SUSPEND", Reason: "no key\n"}
	byLimit := after("planner", obj("$status", "ready", "plan", "P", "dir", "/d"))
	byLimit.Limits, byLimit.Steps = protocol.Limits{MaxSteps: 1}, 1
	completed := after("reviewer", obj("$status", "done"))
	withEdge := after("reviewer", obj("$status", "done"))
	withEdge.Workflow.Graph["$START"].Edges["resume"] = protocol.Edge{Role: "developer", Prompt: "Again: {{$prompt}}", Location: "/l"}

	tests := []struct {
		name       string
		state      moderator.State
		ended      bool
		supplement string
		want       moderator.Decision
	}{
		{"by target: the role that led there, where it ran", after("planner", obj("$status", "unclear", "question", "Which?")), false, "The second.",
			moderator.Decision{Kind: moderator.Run, Role: "planner", Prompt: "Which?\n\nThe second.", Location: "/where/it/ran", Cause: moderator.ByTarget, Status: "unclear"}},
		{"without a supplement", after("planner", obj("$status", "unclear", "question", "Which?")), false, " ",
			moderator.Decision{Kind: moderator.Run, Role: "planner", Prompt: "Which?", Location: "/where/it/ran", Cause: moderator.ByTarget, Status: "unclear"}},
		{"by output: the same role with its reason", byOutput, false, "Here it is.",
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: promptquote.Text(promptquote.Reason, "no key") + "\n\nHere it is.", Location: "/where/it/ran", Cause: moderator.ByOutput, Status: "$SUSPEND"}},
		{"by limit: the role that was next, as the edge says", byLimit, false, "Go on.",
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Do P for T\n\nGo on.", Location: "/d", Cause: moderator.ByLimit, Status: "ready"}},
		{"completed: from the start", completed, true, "One more thing.",
			moderator.Decision{Kind: moderator.Run, Role: "planner", Prompt: "Previous run completed. Resuming with additional context.\n\nOne more thing.", Status: "_"}},
		{"completed: the workflow's own way to resume", withEdge, true, "More.",
			moderator.Decision{Kind: moderator.Run, Role: "developer", Prompt: "Again: T\n\nMore.", Location: "/l", Status: "resume"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := moderator.Resume(t.Context(), tt.state, tt.ended, tt.supplement)
			require.NoError(t, err)
			if tt.want.Cause == moderator.ByTarget {
				require.Contains(t, got.Prompt, "<edge-value id=", "the question is the role's own")
				got.Prompt = promptquote.Plain(got.Prompt)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestResumeRefuses(t *testing.T) {
	t.Parallel()
	_, err := moderator.Resume(t.Context(), after("developer", obj()), false, "x")
	require.ErrorIs(t, err, moderator.ErrNotSuspended)

	empty := moderator.State{Workflow: protocol.Workflow{Graph: map[string]protocol.GraphNode{"$START": edges("_", protocol.Edge{Role: "$END"})}}}
	_, err = moderator.Resume(t.Context(), empty, true, "x")
	prosetest.Error(t, err)
}

func TestNewIsAnAliasAtStart(t *testing.T) {
	t.Parallel()
	w := flow()
	w.Graph["$START"] = edges("new", protocol.Edge{Role: "planner", Prompt: "first"}, "resume", protocol.Edge{Role: "planner", Prompt: "again"})
	got, err := moderator.Next(t.Context(), moderator.State{Workflow: w})
	require.NoError(t, err)
	require.Equal(t, "first", got.Prompt)
}

// Every template and condition can use the inputs, and an answer can't shadow them.
func TestInputs(t *testing.T) {
	t.Parallel()
	s := moderator.State{
		Workflow: protocol.Workflow{
			Roles: map[string]protocol.Role{"a": {Description: "d"}, "run": {Description: "d", Run: []string{"x", "{{$inputs.n}}", "{{text}}", ""}}},
			Graph: map[string]protocol.GraphNode{"a": {Transitions: []protocol.Transition{
				{Edge: protocol.Edge{Role: "a"}, Condition: "$inputs.n > 3"}, {Edge: protocol.Edge{Role: "run", Prompt: "n is {{$inputs.n}}"}},
			}}},
		},
		Start: protocol.Start{Inputs: map[string]any{"n": int64(3)}},
		Last:  &moderator.Last{Role: "a", Output: map[string]any{"$inputs": map[string]any{"n": 9}, "text": "-rf *; $(x)"}},
	}
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.Decision{Kind: moderator.Run, Role: "run", Prompt: "n is 3", Command: []string{"x", "3", "-rf *; $(x)", ""}, Status: "_"}, d)

	s.Start.Inputs = nil
	s.Workflow.Graph["a"] = protocol.GraphNode{Edges: map[string]protocol.Edge{"_": {Role: "run", Prompt: "p"}}}
	_, err = moderator.Next(t.Context(), s)
	require.ErrorContains(t, err, `roles[run]: run[1]`)
	s.Workflow.Roles["run"] = protocol.Role{Description: "d", Run: []string{"{{text}}"}}
	s.Last.Output = map[string]any{"text": " "}
	_, err = moderator.Next(t.Context(), s)
	require.ErrorIs(t, err, moderator.ErrEmpty)
	s.Last.Output = map[string]any{"text": "a\x00b"}
	_, err = moderator.Next(t.Context(), s)
	require.ErrorContains(t, err, "NUL")
}

// A person is asked, never run, regardless of limits and resuming.
func TestPerson(t *testing.T) {
	t.Parallel()
	s := moderator.State{
		Workflow: protocol.Workflow{
			Roles: map[string]protocol.Role{"p": {Description: "d", Person: true}},
			Graph: map[string]protocol.GraphNode{
				"$START": {Edges: map[string]protocol.Edge{"_": {Role: "p", Prompt: "May it?", Location: "sub"}}},
				"p":      {Edges: map[string]protocol.Edge{"_": {Role: "$SUSPEND", Prompt: "Later."}}},
			},
		},
		Limits: protocol.Limits{MaxSteps: 1}, Steps: 5,
	}
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, moderator.Decision{Kind: moderator.Suspend, Role: "p", Prompt: "May it?", Location: "sub", Cause: moderator.ByPerson, Status: "_"}, d)
	_, err = moderator.Resume(t.Context(), s, false, "yes")
	require.ErrorIs(t, err, moderator.ErrForm)
	s.Last = &moderator.Last{Role: "p", Output: map[string]any{}}
	for _, ended := range []bool{false, true} {
		_, err = moderator.Resume(t.Context(), s, ended, "yes")
		require.ErrorIs(t, err, moderator.ErrForm)
	}
}
