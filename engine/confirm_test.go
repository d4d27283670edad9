package engine_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
)

// A step that needs confirmation is done after a yes. After a no it isn't asked for again, and nothing is
// confirmed twice.
func TestTrusting(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	require.NoError(t, os.MkdirAll(w.Dirs.Home, 0o700))
	hash := w.Workflow(statustest.Line(map[string]protocol.Role{"check": {Run: []string{"make"}}}, "check"))
	id := w.Start(hash, heads.Facts{Imported: &heads.Imported{AtMs: 1}})
	e := &engine.Engine{Reader: w.Reader}
	facts, err := w.Heads.Facts(t.Context(), id)
	require.NoError(t, err)
	imported := func() error {
		return trust.Judge{Reader: &e.Reader}.Imported(t.Context(), id, w.At(id), facts)
	}
	asked := 0
	answer := func(yes bool) engine.Ask {
		return func(_ context.Context, u *engine.UntrustedError) bool {
			asked++
			require.Equal(t, hash, u.Workflow)
			require.Equal(t, []string{"check runs: make"}, u.Commands)
			return yes
		}
	}
	require.ErrorAs(t, e.Trusting(t.Context(), answer(false), imported), new(*engine.UntrustedError))
	require.Equal(t, 1, asked)
	require.NoError(t, e.Trusting(t.Context(), answer(true), imported))
	require.NoError(t, e.Trusting(t.Context(), answer(true), imported))
	require.Equal(t, 2, asked)

	stuck := &engine.UntrustedError{Workflow: hash, Name: "x", Commands: []string{"check runs: make"}}
	require.ErrorIs(t, e.Trusting(t.Context(), answer(true), func() error { return stuck }), stuck)
	require.Equal(t, 3, asked, "once only")
	other := errors.New("other")
	require.ErrorIs(t, e.Trusting(t.Context(), answer(true), func() error { return other }), other)
	require.Equal(t, 3, asked)
}
