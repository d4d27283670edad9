package llm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// parrot answers each request with the next text.
type parrot struct {
	texts []string
	asked []llm.Request
}

func (p *parrot) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	p.asked = append(p.asked, req)
	return llm.Response{
		Message: llm.Message{Role: protocol.TurnAssistant, Content: p.texts[len(p.asked)-1]},
		Finish:  llm.FinishStop, Usage: protocol.Usage{Turns: 1, InputTokens: 10}, Model: "m-2029",
	}, nil
}

func TestAdapterAsksOnce(t *testing.T) {
	t.Parallel()
	p := &parrot{texts: []string{"```json\n{\"$status\": \"done\", \"summary\": \"x\"}\n```"}}
	o := roles.Agent("llm", roles.Binding{Maker: llm.Roles(p)})
	got := agentkittest.Run(t, o, agentkittest.Scenario{Task: "Sum it up."}).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "x"}, got.Output)
	require.Equal(t, "m-2029", got.Detail.Model)
	require.EqualValues(t, 10, got.Step.Usage.InputTokens)
	require.Len(t, p.asked, 1)
	require.True(t, p.asked[0].JSON)
	require.Empty(t, p.asked[0].Tools)
	require.Contains(t, p.asked[0].Messages[0].Content, `"summary"`)
	require.Contains(t, p.asked[0].Messages[1].Content, "Sum it up.")
}

func TestAdapterCorrectsAndSuspends(t *testing.T) {
	t.Parallel()
	p := &parrot{texts: []string{"It is done.", `{"$status":"perfect"}`, `{"$status":"$SUSPEND","reason":"Which one?"}`}}
	o := roles.Agent("llm", roles.Binding{Maker: llm.Roles(p)})
	got := agentkittest.Run(t, o, agentkittest.Scenario{}).Succeeded()
	require.Equal(t, "Which one?", got.Suspended)
	require.EqualValues(t, 30, got.Step.Usage.InputTokens)
	require.Contains(t, p.asked[2].Messages[1].Content, "perfect")
}

// A role with a single request. In a separate program:
//
//	agentkit.Run(roles.Agent("summary", roles.Binding{Maker: adapter}))
func ExampleRoles() {
	client := llm.New(config.Endpoint{BaseURL: "http://127.0.0.1:11434/v1", Model: "llama", Stream: true}, llm.Options{})
	adapter := llm.Roles(client)
	schema := map[string]any{"type": "object", "properties": map[string]any{"title": map[string]any{"type": "string"}}}
	type output struct{ Title string }
	role := roles.As[output](adapter("You name things.", schema))
	fmt.Printf("%T\n", role)
	// Output: func(context.Context, *agentkit.Request) (llm_test.output, error)
}
