//go:build unix

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// What belongs to an earlier step cannot be claimed by another.
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
			// A millisecond later: what is as old as the run may be its own.
			w.eventually("the clock goes on", func() bool { return time.Now().UnixMilli() > w.readStep(head).CompletedAtMs })
			w.plays("!lie:" + lie)
			_, err := w.Step(context.Background(), id, StepOptions{})
			requireCode(t, err, protocol.CodeAgent)
			require.Equal(t, head, w.head(id))
		})
	}
}
