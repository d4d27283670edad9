package llm

import (
	"encoding/json"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Message is one entry of a conversation, in a form that outlives the process:
// a session file holds messages as JSON.
type Message struct {
	Role       protocol.TurnRole `json:"role"`
	Content    string            `json:"content,omitempty"`
	ToolCalls  []ToolCall        `json:"toolCalls,omitempty"`
	ToolCallID string            `json:"toolCallId,omitempty"` // of the call that a tool message answers
	Reasoning  string            `json:"reasoning,omitempty"`  // for people; what goes back is in Extra
	// Source is the endpoint and model that wrote the message. Extra goes back
	// to that source alone: another one refuses or misreads it.
	Source string `json:"source,omitempty"`
	// Extra holds fields that this package does not interpret, such as
	// reasoning_content or reasoning_details.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"` // unique in the conversation
	Name string `json:"name"`
	// Args is the text that the model sent; [ParseArgs] reads it.
	Args string `json:"args"`
	// Extra holds fields that must go back, such as a thought signature.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// System returns a system message.
func System(text string) Message { return Message{Role: protocol.TurnSystem, Content: text} }

// User returns a user message.
func User(text string) Message { return Message{Role: protocol.TurnUser, Content: text} }

// ToolResult returns the answer to a tool call.
func ToolResult(id, text string) Message {
	return Message{Role: protocol.TurnTool, ToolCallID: id, Content: text}
}

// Tool tells the model about a tool.
type Tool struct {
	Name        string
	Description string
	Parameters  any // JSON Schema of an object
}

// Request is one question to a model.
type Request struct {
	// Messages and Tools must not be changed in place afterwards: what was written of
	// them is remembered. More messages may be added.
	Messages []Message
	// Tools stay declared in a request without calls: some endpoints refuse a
	// history with tool messages otherwise. NoCalls forbids their use.
	Tools   []Tool
	NoCalls bool
	// Force names the one tool that the reply must call; "": the model is free.
	// Not every endpoint obeys.
	Force string
	JSON  bool // the answer must be one JSON object
	// Watch is called, in the goroutine of Complete, whenever a piece of a
	// streamed reply has come; nil: not wanted. soFar returns what there is of it,
	// and is worth calling only now and then. A try that fails starts over.
	Watch func(soFar func() Message)
}

// Finish is why the model stopped.
type Finish string

// The reasons. A reply with calls counts as [FinishCalls] whatever the endpoint
// says, because endpoints disagree; only [FinishLength] is kept, since the last
// call may then be cut.
const (
	FinishStop    Finish = "stop"
	FinishCalls   Finish = "tool_calls"
	FinishLength  Finish = "length"
	FinishRefusal Finish = "refusal" // Content is the model's refusal
)

// Response is a model's reply.
type Response struct {
	Message Message
	Finish  Finish
	Usage   protocol.Usage // of this reply; without tokens if the endpoint does not report them
	Model   string         // as the endpoint names it
	// Failures are the tries before this reply. They and Usage are also set with an
	// error.
	Failures []Failure
}

// Bill is what a reply cost, with the replies before it that were of no use.
func (r Response) Bill() protocol.Bill {
	var b protocol.Bill
	for _, f := range r.Failures {
		if f.Usage.IfKnown() != nil && f.Usage.Turns > 0 {
			b.Add(&f.Usage)
		}
	}
	if r.Usage.Turns > 0 {
		b.Add(&r.Usage)
	}
	return b
}

// Failure is a try that led to no reply.
type Failure struct {
	Reason string
	Wait   time.Duration  // before the next one
	Usage  protocol.Usage // if the endpoint says that it cost something
}

// Empty reports that there is nothing in the reply: no text, no thought, no call.
func (r Response) Empty() bool {
	return r.Message.Content == "" && r.Message.Reasoning == "" && len(r.Message.ToolCalls) == 0
}
