package cliagent

import (
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Kind tells what an [Event] is.
type Kind int

// What a program reports while it runs. The fields that matter are in brackets.
const (
	// Started: the program says which session it is in [Session, Model, Version].
	// Any other event may bring Session too.
	Started Kind = iota + 1
	// Text: a text of the model that is complete [Text, ID].
	Text
	// Delta: a piece of a text that continues until an event of another kind or ID [Text, ID].
	Delta
	// Reasoning: what the model thinks, in one piece or several [Text, ID].
	Reasoning
	// Called: the model calls a tool [Call, ID].
	Called
	// Returned: a tool's result [Call.ID, Text, Failed].
	Returned
	// Break: the text that follows is another message.
	Break
	// Retrying: the program is repeating a request to its model by itself [Status, Text]. With
	// [Event.Error] the repetition is hopeless, and the program is stopped.
	Retrying
	// Notice: something for a person to know, which is not part of the conversation [Text].
	Notice
	// Heard: the model has been told what a person said while it worked [ID: the one given to
	// [Hearer.Tell]].
	Heard
	// Done: the program has nothing more to say. If it does not end now, it is
	// stopped, and that changes nothing about the outcome.
	Done
)

// Event is one thing that a program tells.
type Event struct {
	Kind    Kind
	Session string // id of the session, wherever a line has one
	Model   string
	Version string
	// ID is the model message's: what has the same ID is one turn. "" where the
	// program has none: then a text after a call begins a new turn.
	ID   string
	Text string
	Call protocol.ToolCall
	// Failed: the tool failed; its turn says so.
	Failed bool
	// Sub: it happened in a sub-agent. It is kept, but is not part of the answer. Name says which
	// sub-agent, if that is known.
	Sub    bool
	Status int            // of an HTTP request, if known
	Error  errorkind.Kind // Retrying: retrying is in vain

	letter agentkit.Letter // Heard: what it was told
}
