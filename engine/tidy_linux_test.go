package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// After an agent was killed, its descendants no longer run, and git in the workspace ignores configuration
// planted by it.
func TestAKilledAgentIsTidiedUpAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!killed")
	var warned []string
	w.onWarning(func(text string) { warned = append(warned, text) })
	w.PutBack = func() (string, error) { return "planted a hook", errors.New("no space") }
	id := w.start()
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	said := strings.Join(warned, "\n")
	prosetest.Text(t, said)
	require.Contains(t, said, "no space; check .git/config")
	var child int
	_, err = fmt.Sscanf(w.runs()[len(w.runs())-1], "child %d", &child)
	require.NoError(t, err)
	w.eventually("nothing is left running", func() bool {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child))
		return err != nil || len(environ) == 0
	})

	w.plays("!exit:0")
	warned = nil
	_, err = w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.NotEmpty(t, warned, "an agent that failed did not do it, either")
	w.plays("ready")
	warned = nil
	w.mustStep(id, StepOptions{})
	require.Empty(t, warned, "others do it themselves")
}
