package view

import (
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// EventKind says what an [Event] tells.
type EventKind string

// The kinds of events.
const (
	StepStarted EventKind = "step-started"
	TurnMade    EventKind = "turn"
	TurnWriting EventKind = "writing" // a turn as far as it has been written
	StepEnded   EventKind = "step-ended"
	ChildrenAre EventKind = "children" // where children of a role stand
)

// Event is what an [engine.Progress] is told, as a value.
type Event struct {
	Kind   EventKind
	Step   engine.StepInfo
	Turn   *protocol.Turn       // of a turn
	Output *protocol.StepOutput // of the end of a step: where the thread stands
	// Children are all those of a role before they are worked on, later those that have
	// come to rest.
	Children []protocol.ChildOutput
	Err      error // why the step ended without a result
}

// Listener is an [engine.Progress] that is told of events.
type Listener func(Event)

// StepStarted implements [engine.Progress].
func (l Listener) StepStarted(s engine.StepInfo) { l(Event{Kind: StepStarted, Step: s}) }

// Turn implements [engine.Progress].
func (l Listener) Turn(s engine.StepInfo, t protocol.Turn) {
	l(Event{Kind: TurnMade, Step: s, Turn: &t})
}

// Writing implements [engine.Progress].
func (l Listener) Writing(s engine.StepInfo, t protocol.Turn) {
	l(Event{Kind: TurnWriting, Step: s, Turn: &t})
}

// StepEnded implements [engine.Progress].
func (l Listener) StepEnded(s engine.StepInfo, out protocol.StepOutput, err error) {
	l(Event{Kind: StepEnded, Step: s, Output: &out, Err: err})
}

// Children implements [engine.Progress].
func (l Listener) Children(of engine.StepInfo, stand []protocol.ChildOutput) {
	l(Event{Kind: ChildrenAre, Step: of, Children: stand})
}
