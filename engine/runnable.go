package engine

import (
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// runnable refuses a workflow that says what this program can store but not yet do:
// to leave it out would be to run another workflow.
func runnable(w protocol.Workflow) error {
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		switch player := w.Roles[name].Player(); player {
		case protocol.PlayedByAgent, protocol.PlayedByCommand, protocol.PlayedByPerson:
		default:
			return fail(protocol.CodeInvalid, "role %q of workflow %q is played by %s, which this uwf cannot run yet", name, w.Name, playerText(player))
		}
	}
	return nil
}

// playerText names a player in messages.
func playerText(p protocol.Player) string {
	switch p {
	case protocol.PlayedByWorkflow:
		return "another workflow"
	case protocol.PlayedByAll:
		return "several roles at once"
	case protocol.PlayedByEach:
		return "one role for each item"
	}
	return "an agent"
}
