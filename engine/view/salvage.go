package view

import (
	"context"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

const restoreNode = "restore the node from a backup, or import the thread from a bundle: uwf thread import FILE"

// salvageBefore says how to go on when a step names something that is lost, or
// when the step before it is.
func salvageBefore(ctx context.Context, store cas.Store, s thread.Step, stepLost bool) string {
	if s.Prev == nil {
		return restoreNode
	}
	if !stepLost {
		return restoreNode + "\n" + forkHint(*s.Prev)
	}
	whole, err := thread.Survivors(ctx, store, s)
	if err != nil || len(whole) == 0 {
		return restoreNode + "\n" + forkHint(s.Start) // from the beginning
	}
	const most = 3
	hints := []string{restoreNode}
	for _, h := range whole[:min(most, len(whole))] {
		hints = append(hints, forkHint(h))
	}
	return strings.Join(hints, "\n")
}

// salvageHead says how to go on when the head itself is lost: the record of the
// last try knows what was before it.
func salvageHead(head protocol.Hash, run *status.Run) string {
	if run == nil || run.Head == "" || run.Head == head {
		return restoreNode
	}
	return restoreNode + "\n" + forkHint(run.Head)
}

func forkHint(h protocol.Hash) string {
	return "uwf thread fork " + string(h) + " continues from the last intact step before it, in another thread"
}
