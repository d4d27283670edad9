package tools_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// A custom tool consists of a name, a description and a function; the schema of its arguments is derived from
// their type.
func ExampleFunc() {
	type args struct {
		City string `json:"city" doc:"City, in English"`
		Unit string `json:"unit,omitempty" enum:"C,F"`
	}
	weather := tools.Func("weather", "Tell the weather in a city.", func(_ context.Context, a args) (string, error) {
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
	schema, err := json.Marshal(weather.Spec().Parameters)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(schema))
	for _, a := range []map[string]any{{"city": "Lisbon"}, {"city": "Atlantis"}, {"city": "Lisbon", "unit": "K"}, {}} {
		result, err := registry.Call(context.Background(), "weather", a)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Text)
	}
	// Output:
	// {"additionalProperties":false,"properties":{"city":{"description":"City, in English","type":"string"},"unit":{"enum":["C","F"],"type":"string"}},"required":["city"],"type":"object"}
	// sunny in Lisbon
	// Error: there is no weather in Atlantis. Ask for a city above the sea
	// Error: weather: unit must be one of C, F. Call it again with {"city": string, "unit"?: string}
	// Error: weather: city is missing. Call it again with {"city": string, "unit"?: string}
}

// New accepts more: aliases, an effect, an explicit schema.
func ExampleNew() {
	type args struct {
		Name string `json:"name"`
	}
	greet := tools.New(tools.Spec{
		Name: "greet", Aliases: []string{"hello"}, Description: "Greet somebody.", Effect: tools.Reads,
		Parameters: map[string]any{
			"type":                 "object",
			"properties":           map[string]any{"name": map[string]any{"type": "string"}},
			"required":             []string{"name"},
			"additionalProperties": false,
		},
	}, func(_ context.Context, a args) (string, error) { return "hello, " + a.Name, nil })
	registry, err := tools.NewRegistry(greet)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := registry.Call(context.Background(), "hello", map[string]any{"name": "you"})
	fmt.Println(result.Text, err)
	// Output: hello, you <nil>
}
