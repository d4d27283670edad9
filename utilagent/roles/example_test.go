package roles_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// A role is a function built from its prompt and schema. This one needs no model: it counts words. Agent
// turns it into a program.
func ExampleAgent() {
	count := func(prompt string, schema any) roles.Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{
				Value:     map[string]any{"$status": "done", "words": len(strings.Fields(req.User))},
				SessionID: req.Thread,
			}, nil
		}
	}
	o := roles.Agent("counter", roles.Binding{Maker: count})
	fmt.Println(o.Name, o.Structured)
	// In main: agentkit.Run(o)

	// Output: counter true
}

// As gives a role's output a type, for an agent that calls roles itself.
func ExampleAs() {
	type verdict struct {
		Approved bool   `json:"approved"`
		Why      string `json:"why"`
	}
	review := func(prompt string, schema any) roles.Func {
		return func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Value: map[string]any{"approved": true, "why": "all tests pass"}}, nil
		}
	}
	judge := roles.As[verdict](review("You review changes.", map[string]any{"type": "object"}))
	v, err := judge(context.Background(), &agentkit.Request{})
	fmt.Println(v.Approved, v.Why, err)
	// Output: true all tests pass <nil>
}
