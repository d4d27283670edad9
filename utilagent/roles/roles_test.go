package roles_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// says is an adapter that returns the given results in order and records its calls.
type says struct {
	values []any
	asked  []string
}

func (s *says) adapter(prompt string, _ any) roles.Func {
	return func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
		s.asked = append(s.asked, prompt+"\n--\n"+req.User)
		return agentkit.Result{Value: s.values[len(s.asked)-1], SessionID: "s"}, nil
	}
}

func TestAdapterIsAnAgent(t *testing.T) {
	t.Parallel()
	s := &says{values: []any{map[string]any{"$status": "perfect"}, map[string]any{"$status": "done", "summary": "x"}}}
	other := func(string, any) roles.Func {
		return func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{}, errors.New("not for this role")
		}
	}
	o := roles.Agent("typed", roles.Binding{Maker: other, Overrides: map[string]roles.Maker{"worker": s.adapter}})
	got := agentkittest.Run(t, o, agentkittest.Scenario{Task: "Do it."}).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "x"}, got.Output)
	require.Equal(t, protocol.ByValue, got.Step.ExtractedBy)
	require.NotContains(t, s.asked[0], "frontmatter", "the format is the adapter's business")
	require.Contains(t, s.asked[0], "Do it.")
	require.Contains(t, s.asked[1], "Do it.")
	prosetest.Text(t, s.asked[1])

	prosetest.Text(t, agentkittest.Run(t, roles.Agent("typed", roles.Binding{}), agentkittest.Scenario{}).Failed().ErrorText())
}

func TestAgentIsAnAdapter(t *testing.T) {
	t.Parallel()
	const block = "---\n$status: done\nsummary: written\n---\nThe work.\n"
	read := func(text string) roles.Reader {
		return func(_ context.Context, system, user string, _ any) (string, protocol.Usage, error) {
			require.Contains(t, system, "summary")
			require.Contains(t, user, "It is all done.")
			return text, protocol.Usage{Turns: 1, InputTokens: 7}, nil
		}
	}
	cases := map[string]struct {
		answer  string
		extract roles.Reader
		want    any
		by      protocol.ExtractedBy
		tokens  int64
	}{
		"a block": {block, nil, "written", protocol.ByFrontmatter, 5},
		"a model": {"It is all done.", read("```json\n{\"$status\":\"done\",\"summary\":\"read\"}\n```"), "read", protocol.ByLLM, 12},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
				prosetest.Text(t, req.Prompt)
				return agentkit.Result{Output: c.answer, SessionID: "s", Usage: &protocol.Usage{Turns: 1, InputTokens: 5}}, nil
			}
			o := roles.Agent("text", roles.Binding{Maker: roles.FromText(agent, c.extract)})
			got := agentkittest.Run(t, o, agentkittest.Scenario{}).Succeeded()
			require.Equal(t, c.want, got.Output.(map[string]any)["summary"])
			require.Equal(t, c.by, got.Step.ExtractedBy)
			require.Equal(t, c.answer, got.Content, "what the agent has written is kept")
			require.Equal(t, c.tokens, got.Step.Usage.InputTokens)
			require.Len(t, got.Turns, 1)
		})
	}
}

func TestAgentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	agent := func(context.Context, *agentkit.Request) (agentkit.Result, error) {
		return agentkit.Result{Output: "Nothing.", SessionID: "s"}, nil
	}
	broken := func(context.Context, string, string, any) (string, protocol.Usage, error) {
		return "null", protocol.Usage{}, nil
	}
	for name, extract := range map[string]roles.Reader{"nobody reads it": nil, "the reader finds nothing": broken} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := roles.Agent("text", roles.Binding{Maker: roles.FromText(agent, extract)})
			prosetest.Text(t, agentkittest.Run(t, o, agentkittest.Scenario{}).Failed().ErrorText())
		})
	}
}

func TestTypedRole(t *testing.T) {
	t.Parallel()
	type output struct{ Summary string }
	role := func(res agentkit.Result, err error) func(context.Context, *agentkit.Request) (output, error) {
		return roles.As[output](func(context.Context, *agentkit.Request) (agentkit.Result, error) { return res, err })
	}
	got, err := role(agentkit.Result{Value: map[string]any{"$status": "done", "summary": "x"}}, nil)(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, output{"x"}, got)

	for name, res := range map[string]agentkit.Result{
		"by the agent": {Suspend: "who?"},
		"by the model": {Value: map[string]any{"$status": "$SUSPEND", "reason": "who?"}},
	} {
		_, err = role(res, nil)(t.Context(), nil)
		var suspended *roles.SuspendedError
		require.ErrorAs(t, err, &suspended, name)
		require.Equal(t, "who?", suspended.Reason)
	}
	_, err = role(agentkit.Result{Output: "text"}, nil)(t.Context(), nil)
	prosetest.Error(t, err)
	_, err = role(agentkit.Result{Value: []any{1}}, nil)(t.Context(), nil)
	prosetest.Error(t, err)
	_, err = role(agentkit.Result{}, &extract.InvalidError{Reason: "r"})(t.Context(), nil)
	require.ErrorContains(t, err, "r")
}
