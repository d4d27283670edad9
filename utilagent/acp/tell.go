package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// emitter turns the updates of one prompt into events.
//
// It resolves what the protocol leaves open: where one message ends and the next begins, when the arguments
// of a tool call are complete, and which texts don't come from the model.
type emitter struct {
	emit func(cliagent.Event)

	message string // message ID of the latest text
	named   bool   // the agent's messages have IDs
	parted  bool   // the next text begins a new message

	calls   map[string]*call
	ended   map[string]bool // IDs of calls whose result was emitted
	pending []*call         // calls not emitted yet, in order

	tools  int    // number of calls emitted
	latest string // start of the text since the last tool event
	broken bool   // the agent marked the following text as an error

	used  protocol.Usage // sum of the per-request usage, if the agent reports it
	uses  bool           // used is set
	cost  float64        // cost of the session so far
	costs bool           // cost is set
	model string
}

// Bounds on the state kept for a prompt.
const (
	maxCalls = 1000    // concurrent calls
	maxText  = 4 << 10 // enough to distinguish an error from an answer
)

func newEmitter(emit func(cliagent.Event)) *emitter {
	return &emitter{emit: emit, calls: map[string]*call{}, ended: map[string]bool{}}
}

// update handles one update of the session.
func (t *emitter) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		t.text(u)
		t.question(u.Meta.Usage)
	case "agent_thought_chunk":
		if text := readBlock(u.Content); text != "" {
			t.emit(cliagent.Event{Kind: cliagent.Reasoning, ID: u.MessageID, Text: text, Sub: u.sub()})
		}
		t.parted = true
	case "tool_call", "tool_call_update":
		t.tool(u)
	case "user_message_chunk":
		// Earlier text belongs to an earlier prompt: it is a late replay.
		t.parted, t.latest = true, ""
	case "plan", "available_commands_update":
		t.parted = true
	case "usage_update":
		t.usage(u)
	case "session_info_update":
		t.broken = t.broken || u.Meta.Codex.Status.Type == "systemError"
	case "notice":
		t.emit(cliagent.Event{Kind: cliagent.Notice, Text: strings.TrimSpace(u.Severity + ": " + u.Title)})
	}
}

func (u *update) sub() bool { return u.Meta.Claude.Parent != "" }

// text handles a piece of a message.
func (t *emitter) text(u update) {
	text := readBlock(u.Content)
	if text == "" {
		return
	}
	t.emitCalls()
	switch {
	case u.sub():
		t.emit(cliagent.Event{Kind: cliagent.Delta, ID: u.MessageID, Text: text, Sub: true})
	case u.MessageID == "" && (t.named || t.latest == "" && isWarning(text)):
		// Agents that assign message IDs insert their own warnings without one.
		t.emit(cliagent.Event{Kind: cliagent.Notice, Text: strings.TrimSpace(text)})
	default:
		t.emitText(u.MessageID, text)
	}
}

// isWarning recognizes a warning of codex-acp, which comes in one piece.
func isWarning(text string) bool {
	return strings.HasPrefix(text, "Warning:") && strings.HasSuffix(text, "\n\n")
}

// emitText emits a piece of the model's text.
func (t *emitter) emitText(id, text string) {
	parted := id == "" && (t.parted || t.begins(text))
	if parted {
		t.emit(cliagent.Event{Kind: cliagent.Break})
	}
	if parted || id != t.message {
		t.latest = ""
	}
	t.parted, t.message, t.named = false, id, t.named || id != ""
	if len(t.latest) < maxText {
		t.latest += text[:min(len(text), maxText)]
	}
	t.emit(cliagent.Event{Kind: cliagent.Delta, ID: id, Text: text})
}

// begins reports whether a piece begins a new message without a marker. Some agents without message IDs send
// warnings and interim text right before an answer. An answer begins with "---"; inside an answer such a line
// is a horizontal rule.
func (t *emitter) begins(text string) bool {
	rest, ok := strings.CutPrefix(text, "---")
	opens := ok && (rest == "" || strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n"))
	return opens && t.latest != "" && !strings.HasPrefix(strings.TrimSpace(t.latest), "---")
}

func (t *emitter) usage(u update) {
	if u.Cost != nil && (u.Cost.Currency == "" || u.Cost.Currency == "USD") && u.Cost.Amount.USD() != nil {
		t.cost, t.costs = *u.Cost.Amount.USD(), true
	}
	if u.Meta.ClaudeModel != "" {
		t.model = u.Meta.ClaudeModel
	}
}

// question adds the usage of one request.
func (t *emitter) question(n tokenCount) {
	var u protocol.Usage
	if n.add(&u) {
		t.used, t.uses = t.used.Add(u), true
	}
}

// tool handles a new or changed tool call.
func (t *emitter) tool(u update) {
	c := t.calls[u.ID]
	if c == nil {
		if u.Kind == "tool_call_update" && u.Title == "" && u.Name == "" && (t.ended[u.ID] || !u.hasContent()) {
			return // the call has ended, or is not emitted yet
		}
		c = t.newCall(u)
	}
	c.change(u)
	switch u.Status {
	case "in_progress":
		if !isNull(c.input) {
			t.emitCalls()
		}
	case "completed", "failed":
		t.emitCalls()
		delete(t.calls, u.ID)
		if len(t.ended) >= maxCalls {
			clear(t.ended)
		}
		t.ended[u.ID] = true
		t.emit(cliagent.Event{
			Kind: cliagent.Returned, Call: protocol.ToolCall{ID: u.ID, Name: c.called()},
			Text: c.result(), Failed: u.Status == "failed", Sub: c.sub,
		})
		t.latest, t.message, t.parted = "", "", false
	}
}

// hasContent reports whether an update has a result to emit, even if its call is otherwise unknown: some agents
// report a denied tool this way.
func (u *update) hasContent() bool {
	return u.Status == "failed" || u.Status == "completed" && !(isNull(u.Content) && isNull(u.RawOutput))
}

// newCall starts tracking a call.
func (t *emitter) newCall(u update) *call {
	if len(t.calls) >= maxCalls {
		t.emitCalls()
		clear(t.calls) // the agent never ends its calls; drop their results
	}
	c := &call{id: u.ID, title: u.Title, sub: u.sub(), message: t.message}
	t.calls[u.ID] = c
	t.pending = append(t.pending, c)
	t.tools++
	return c
}

// permissionAsked records the details that a permission request gives about a call.
func (t *emitter) permissionAsked(c toolCall, content json.RawMessage) *call {
	known := t.calls[c.ID]
	if known == nil {
		// Some agents ask before they announce a call, or use another ID. Any later text is a new message.
		known = &call{id: c.ID, title: c.Title}
		t.parted, t.latest = true, ""
	}
	known.change(update{toolCall: c, Content: content})
	t.emitCalls()
	return known
}

// emitCalls emits the calls that were waiting for their arguments.
func (t *emitter) emitCalls() {
	for _, c := range t.pending {
		t.emit(cliagent.Event{
			Kind: cliagent.Called, ID: c.message, Sub: c.sub,
			Call: protocol.ToolCall{ID: c.id, Name: c.called(), Args: c.args()},
		})
		t.latest = ""
	}
	t.pending = nil
}

// errorText matches errors that agents send as messages.
var errorText = lazyregexp.New(`^(Error: |HTTP [45]\d\d\b|API Error\b)`)

// failure returns the message if the agent sent an error as its answer, or "".
func (t *emitter) failure() string {
	text := strings.TrimSpace(t.latest)
	switch {
	case t.broken:
		return cmp.Or(text, "the agent reported an unknown error")
	case t.tools == 0 && errorText().MatchString(text):
		return text
	}
	return ""
}

// answered reports whether text arrived after the last tool event.
func (t *emitter) answered() bool { return strings.TrimSpace(t.latest) != "" }
