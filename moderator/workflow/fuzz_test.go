package workflow_test

import (
	"errors"
	"os"
	"testing"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fuzztest"
)

// Any file is either a workflow that can start or yields problems that each have a position.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, seed := range []string{
		"", "a: [", "name: x\ndescription: d\nroles: {}\ngraph: {$START: {_: $END}}\n",
		prompt("type: object, properties: {xs: {type: array}}", "{{#xs}}{{.}}{{/xs}}{{xs.0.a}}"),
		prompt("oneOf: [{properties: {$status: {const: a}}}, 1]", "{{x}}"),
		head + role("a", "type: string") + "graph: {$START: {new: a, resume: a}, a: {_: {role: $SUSPEND}, b: c}}\n",
		"moderator: 1\n", "roles: !include x\n", "name: &a x\ndescription: *a\n",
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(planned(prompting("{{$steps.plan.slug}}{{#$steps.review}}{{comments}}{{/$steps.review}}{{$body}}{{$artifacts}}"))))
	f.Add([]byte(planned("impl", "_: plan }", "_: plan, resume: { role: plan, prompt: '{{$steps.fix-up.answer}}' } }", `join: "{}"`, `join: "{'n': $steps.plan.size}"`)))
	for _, p := range pairs() {
		f.Add([]byte(p.short))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Bounded(t)()
		def, err := workflow.Parse(workflow.Source{Data: data})
		if err != nil {
			requirePlaces(t, err)
			return
		}
		_, err = moderator.Next(t.Context(), moderator.State{Workflow: def.Workflow, Start: protocol.Start{Prompt: "p"}})
		if _, ok := errors.AsType[*moderator.RouteError](err); ok {
			t.Fatalf("a valid workflow cannot begin: %v", err)
		}
	})
}

func requirePlaces(t *testing.T, err error) {
	t.Helper()
	var problems *workflow.Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("want problems, got %v", err)
	}
	for _, p := range problems.List {
		if p.Line < 1 || p.Column < 1 || p.Message == "" || p.File == "" {
			t.Fatalf("incomplete problem %+v", p)
		}
	}
}
