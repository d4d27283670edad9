package tools_test

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// A tool of one's own is a description and a function.
func ExampleNew() {
	type args struct {
		City string `json:"city"`
	}
	weather := tools.New(tools.Spec{
		Name:        "weather",
		Description: "Tell the weather in a city.",
		Parameters: map[string]any{
			"type":                 "object",
			"properties":           map[string]any{"city": map[string]any{"type": "string"}},
			"required":             []string{"city"},
			"additionalProperties": false,
		},
	}, func(_ context.Context, a args) (string, error) {
		if a.City == "Atlantis" {
			return "", fmt.Errorf("there is no weather in %s. Ask for a city above the sea", a.City)
		}
		return "sunny in " + a.City, nil
	})

	registry, err := tools.NewRegistry(weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, city := range []any{"Lisbon", "Atlantis", nil} {
		result, err := registry.Call(context.Background(), "weather", map[string]any{"city": city})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Text)
	}
	// Output:
	// sunny in Lisbon
	// Error: there is no weather in Atlantis. Ask for a city above the sea
	// Error: weather: city is missing. Call it again with {"city": string}
}
