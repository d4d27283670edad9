//go:build unix

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// A step cannot claim nodes of an earlier step.
func TestBorrowedNodes(t *testing.T) {
	t.Parallel()
	for lie, test := range map[string]struct{ before, want string }{
		"borrowed detail": {"!timed:again", "has the detail of an earlier step"},
		"borrowed prompt": {"ready", `has the assembledPrompt of a step of role "planner"`},
	} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.before)
			id := w.start()
			head := w.mustStep(id, StepOptions{}).Head
			// A node as old as the run could be its own, so wait a millisecond.
			w.eventually("the clock goes on", func() bool { return time.Now().UnixMilli() > w.readStep(head).CompletedAtMs })
			w.plays("!lie:" + lie)
			_, err := w.Step(context.Background(), id, StepOptions{})
			requireCode(t, err, protocol.CodeAgent)
			require.Equal(t, head, w.head(id))
		})
	}
}
