package agentkit_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// An adapter is a function of a role's prompt and schema. This one needs no
// model: it counts words. FromAdapter makes a program of it, in which another
// adapter plays the role "reviewer".
func ExampleFromAdapter() {
	count := func(prompt string, schema any) agentkit.RoleFunc {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{
				Value:     map[string]any{"$status": "done", "words": len(strings.Fields(req.User))},
				SessionID: req.Thread,
			}, nil
		}
	}
	o := agentkit.FromAdapter("counter", agentkit.Binding{
		Adapter:   count,
		Overrides: map[string]agentkit.Adapter{"reviewer": agentkit.AdaptAgent(consult, nil)},
	})
	fmt.Println(o.Name, o.Structured)
	// In main: agentkit.Run(o)

	// Output: counter true
}

// An agent that answers in text, such as the example of this package, becomes an
// adapter. What has no valid frontmatter is read by the extractor.
func ExampleAdaptAgent() {
	adapter := agentkit.AdaptAgent(consult, nil)
	agentkit.Run(agentkit.FromAdapter("oracle", agentkit.Binding{Adapter: adapter}))
}

// As gives a role's output a type, for an agent that calls roles itself.
func ExampleAs() {
	type verdict struct {
		Approved bool   `json:"approved"`
		Why      string `json:"why"`
	}
	review := func(prompt string, schema any) agentkit.RoleFunc {
		return func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Value: map[string]any{"approved": true, "why": "all tests pass"}}, nil
		}
	}
	judge := agentkit.As[verdict](review("You review changes.", map[string]any{"type": "object"}))
	v, err := judge(context.Background(), &agentkit.Request{})
	fmt.Println(v.Approved, v.Why, err)
	// Output: true all tests pass <nil>
}
