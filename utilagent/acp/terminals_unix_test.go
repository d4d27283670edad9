//go:build unix

package acp

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// What an agent runs through us is held back as the agent is: it asks for that
// whether or not it is offered, and so can what it runs itself, on its stdout.
func TestTerminalsAreConfined(t *testing.T) {
	t.Parallel()
	space, err := tools.OpenWorkspace(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, space.Close()) })
	why := errors.New("held back")
	list := terminals{space: space, confine: func(c proc.Command) (proc.Command, error) {
		require.Equal(t, "/bin/sh", c.Path)
		return c, why
	}}
	_, err = list.create([]byte(`{"command":"/bin/sh","args":["-c","true"]}`))
	require.ErrorIs(t, err, why)
	require.Empty(t, list.open)
}
