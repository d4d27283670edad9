package trust_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
)

// A workflow that gets variables under its name, or runs one that does, waits until a person confirms that.
// Trust in its commands, or being the user's own, isn't enough.
func TestMustGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inner := w.runs("inner")
	outer := statustest.Line(map[string]protocol.Role{"b": {Workflow: inner}}, "b")
	h := w.World.Workflow(outer)
	asks := func() error { return w.judge.MustGrant(t.Context(), h, outer, "") }
	require.NoError(t, asks(), "nothing is granted")
	w.judge.Reader.Config = func(context.Context) (protocol.Config, error) {
		return protocol.Config{Commands: &protocol.CommandsConfig{PassEnv: map[string][]string{"inner.build": {"GH_TOKEN"}}}}, nil
	}
	require.NoError(t, w.judge.TrustOwn(t.Context(), h))
	var untrusted *trust.UntrustedError
	require.True(t, errors.As(asks(), &untrusted))
	require.Equal(t, []string{"inner: build runs: make 'it all'", "inner: build: gets GH_TOKEN"}, untrusted.Commands)
	require.NoError(t, w.judge.Trust(t.Context(), h))
	require.NoError(t, asks())
	other := outer
	other.Description = "another"
	require.NoError(t, w.judge.MustGrant(t.Context(), w.World.Workflow(other), other, ""), "what runs the same gets nothing itself")
}
