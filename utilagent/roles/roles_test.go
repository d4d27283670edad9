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
