package react_test

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
	"github.com/united-workforce/uwf/utilagent/roles"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// A role with a custom tool that works until it calls resolve. In a separate program:
//
//	agentkit.Run(roles.Agent("stock", roles.Binding{Maker: adapter}))
func ExampleRoles() {
	type args struct {
		Article string `json:"article"`
	}
	stock := tools.New(tools.Spec{
		Name: "stock", Description: "How many of an article are in stock.",
		Parameters: map[string]any{
			"type": "object", "properties": map[string]any{"article": map[string]any{"type": "string"}},
			"required": []string{"article"}, "additionalProperties": false,
		},
	}, func(_ context.Context, a args) (string, error) {
		return "12 of " + a.Article, nil
	})
	registry, err := tools.NewRegistry(stock)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := llm.New(config.Endpoint{BaseURL: "http://127.0.0.1:11434/v1", Model: "llama", Stream: true}, llm.Options{})
	adapter := react.Roles(react.Loop{Model: client, Tools: registry, Turns: 10})

	schema := map[string]any{"type": "object", "properties": map[string]any{"count": map[string]any{"type": "integer"}}}
	type output struct{ Count int }
	count := roles.As[output](adapter("You count what is in stock.", schema))
	fmt.Printf("%T\n", count)
	// Output: func(context.Context, *agentkit.Request) (react_test.output, error)
}
