package cliagent

import "github.com/united-workforce/uwf/protocol"

// Calls makes events of what a program says about its tools. It reports each call once,
// however often the program does, and before its result, even if the program reports no
// beginning. The zero value is ready.
type Calls struct{ told map[string]bool }

// Begun are the events of a call that runs.
func (c *Calls) Begun(call protocol.ToolCall) []Event {
	if c.told[call.ID] {
		return nil
	}
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[call.ID] = true
	return []Event{{Kind: Called, Call: call}}
}

// Ended are the events of a call that has returned. Its id may come again, as that
// of another call.
func (c *Calls) Ended(call protocol.ToolCall, result string, failed bool) []Event {
	events := c.Begun(call)
	delete(c.told, call.ID)
	return append(events, Event{Kind: Returned, Call: protocol.ToolCall{ID: call.ID}, Text: result, Failed: failed})
}
