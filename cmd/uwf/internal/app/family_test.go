package app

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Children are drawn below their parents; without enough room, the deepest are counted.
func TestATreeOfChildren(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	lines := 24
	v := &Display{w: &bytes.Buffer{}, live: true, now: func() time.Time { return at.Add(3 * time.Second) }, size: func() (int, int) { return 60, lines }}
	kids := func(status protocol.Status, keys ...string) (all []protocol.ChildOutput) {
		for _, k := range keys {
			all = append(all, protocol.ChildOutput{Key: k, Status: status})
		}
		return all
	}
	shows{v}.Children(engine.StepInfo{Number: 1, Role: "all"}, append(kids(protocol.StatusIdle, "A", "B", "C"), kids(protocol.StatusSuspended, "D")...))
	for _, k := range []string{"A", "B"} {
		shows{v}.Children(engine.StepInfo{Path: k, Label: "item " + k, Number: 1, Role: "panel"}, kids(protocol.StatusIdle, "docs", "tests"))
		for _, part := range []string{"docs", "tests"} {
			shows{v}.StepStarted(engine.StepInfo{Path: k + "/" + part, Label: "item " + k + "/" + part, Number: 1, Role: part, Started: at})
		}
	}
	prosetest.Text(t, v.tree(7))
	prosetest.Text(t, v.tree(4))
	for most := 1; most < 7; most++ {
		require.LessOrEqual(t, len(v.tree(most)), most, fmt.Sprint(most))
	}
	shows{v}.StepEnded(engine.StepInfo{Path: "A/docs", Label: "item A/docs", Number: 1, Role: "docs", Started: at}, protocol.StepOutput{Status: protocol.StatusCompleted}, nil)
	shows{v}.StepEnded(engine.StepInfo{Path: "A/tests", Label: "item A/tests", Number: 1, Role: "tests", Started: at}, protocol.StepOutput{Status: protocol.StatusError}, nil)
	shows{v}.Children(engine.StepInfo{Number: 1, Role: "all"}, kids(protocol.StatusError, "A"))
	prosetest.Text(t, v.tree(7)[0])
	v.Leave()
	require.Empty(t, v.drawn)
}
