package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// teller turns what an agent tells during one prompt into events.
//
// What the protocol leaves open is decided here: where one message ends and the
// next begins, when the arguments of a tool call are complete, and which texts
// are not the model's.
type teller struct {
	emit func(cliagent.Event)

	message string // id of the message that the last text was of
	named   bool   // the agent's messages have ids
	parted  bool   // a text that follows is another message
	held    string // a warning, or the beginning of an answer

	calls   map[string]*call
	ended   map[string]bool // ids of calls whose result was told
	pending []*call         // not told yet, in order

	tools  int    // that were called
	said   string // the beginning of the text since the last tool event
	broken bool   // the agent says that what follows is an error

	used  protocol.Usage // by the questions of this prompt, where the agent reports each
	uses  bool           // used is known
	cost  float64        // of the session so far
	costs bool           // cost is known
	model string
}

// Bounds of what a prompt may make us remember.
const (
	maxCalls = 1000    // that run at the same time
	maxSaid  = 4 << 10 // enough to tell an error from an answer
)

func newTeller(emit func(cliagent.Event)) *teller {
	return &teller{emit: emit, calls: map[string]*call{}, ended: map[string]bool{}}
}

// update takes one update of the session.
func (t *teller) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		t.text(u)
		t.question(u.Meta.Usage)
	case "agent_thought_chunk":
		t.settle()
		if text := readBlock(u.Content); text != "" {
			t.emit(cliagent.Event{Kind: cliagent.Reasoning, ID: u.MessageID, Text: text, Sub: u.sub()})
		}
		t.parted = true
	case "tool_call", "tool_call_update":
		t.tool(u)
	case "user_message_chunk":
		// What came before belongs to an earlier prompt: a replay that is late.
		t.settle()
		t.parted, t.said = true, ""
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

// text takes a piece of a message.
func (t *teller) text(u update) {
	text := readBlock(u.Content)
	if text == "" {
		return
	}
	t.tellCalls()
	switch {
	case u.sub():
		t.emit(cliagent.Event{Kind: cliagent.Delta, ID: u.MessageID, Text: text, Sub: true})
	case u.MessageID == "" && t.named:
		// An agent that names its messages puts its own warnings in without a name.
		t.emit(cliagent.Event{Kind: cliagent.Notice, Text: strings.TrimSpace(text)})
	case t.held != "" && strings.HasSuffix(t.held, "\n\n"):
		t.notice()
		t.text(u)
	case u.MessageID == "" && len(t.held) < maxSaid && strings.HasPrefix(t.held+text, "Warning:"):
		t.held += text // whether that was one shows when a message with a name comes, or none
	case u.MessageID != "" && t.held != "":
		t.notice()
		t.say(u.MessageID, text)
	default:
		text, t.held = t.held+text, ""
		t.say(u.MessageID, text)
	}
}

// say tells a piece of the model's text.
func (t *teller) say(id, text string) {
	parted := id == "" && (t.parted || t.begins(text))
	if parted {
		t.emit(cliagent.Event{Kind: cliagent.Break})
	}
	if parted || id != t.message {
		t.said = ""
	}
	t.parted, t.message, t.named = false, id, t.named || id != ""
	if len(t.said) < maxSaid {
		t.said += text[:min(len(text), maxSaid)]
	}
	t.emit(cliagent.Event{Kind: cliagent.Delta, ID: id, Text: text})
}

// begins reports whether a piece begins another message although nothing says so:
// some agents without names for messages send warnings and interim words right
// before an answer. An answer begins with "---"; a line like that inside one is
// a rule.
func (t *teller) begins(text string) bool {
	rest, ok := strings.CutPrefix(text, "---")
	opens := ok && (rest == "" || strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n"))
	return opens && t.said != "" && !strings.HasPrefix(strings.TrimSpace(t.said), "---")
}

// notice tells a held text that was a warning.
func (t *teller) notice() {
	t.emit(cliagent.Event{Kind: cliagent.Notice, Text: strings.TrimSpace(t.held)})
	t.held = ""
}

// settle tells a held text: it was the model's after all.
func (t *teller) settle() {
	if t.held == "" {
		return
	}
	text := t.held
	t.held = ""
	t.say("", text)
}

func (t *teller) usage(u update) {
	if u.Cost != nil && (u.Cost.Currency == "" || u.Cost.Currency == "USD") && u.Cost.Amount.USD() != nil {
		t.cost, t.costs = *u.Cost.Amount.USD(), true
	}
	if u.Meta.ClaudeModel != "" {
		t.model = u.Meta.ClaudeModel
	}
}

// question adds what one question has used.
func (t *teller) question(n tokenCount) {
	var u protocol.Usage
	if n.add(&u) {
		t.used, t.uses = t.used.Add(u), true
	}
}

// end tells what was held back. The prompt is over.
func (t *teller) end() {
	t.settle()
	t.tellCalls()
}

// tool takes a tool call, or a change of one.
func (t *teller) tool(u update) {
	t.settle()
	c := t.calls[u.ID]
	if c == nil {
		if u.Kind == "tool_call_update" && u.Title == "" && u.Name == "" && (t.ended[u.ID] || !u.tells()) {
			return // of a call that has ended, or is yet to be told
		}
		c = t.newCall(u)
	}
	c.change(u)
	switch u.Status {
	case "in_progress":
		if !isNull(c.input) {
			t.tellCalls()
		}
	case "completed", "failed":
		t.tellCalls()
		delete(t.calls, u.ID)
		if len(t.ended) >= maxCalls {
			clear(t.ended)
		}
		t.ended[u.ID] = true
		t.emit(cliagent.Event{
			Kind: cliagent.Returned, Call: protocol.ToolCall{ID: u.ID, Name: c.called()},
			Text: c.result(), Failed: u.Status == "failed", Sub: c.sub,
		})
		t.said, t.message, t.parted = "", "", false
	}
}

// tells reports whether an update has a result worth telling, also of a call that
// nothing else is known of: some agents tell in this way that a tool was refused.
func (u *update) tells() bool {
	return u.Status == "failed" || u.Status == "completed" && !(isNull(u.Content) && isNull(u.RawOutput))
}

// newCall begins to follow a call.
func (t *teller) newCall(u update) *call {
	if len(t.calls) >= maxCalls {
		t.tellCalls()
		clear(t.calls) // an agent that never ends its calls: their results are lost
	}
	c := &call{id: u.ID, title: u.Title, sub: u.sub(), message: t.message}
	t.calls[u.ID] = c
	t.pending = append(t.pending, c)
	t.tools++
	return c
}

// asked takes what a request for permission says of a call.
func (t *teller) asked(c toolCall, content json.RawMessage) *call {
	known := t.calls[c.ID]
	if known == nil {
		// Some ask before they tell of a call, or under another id. What is said
		// from here on is another message.
		known = &call{id: c.ID, title: c.Title}
		t.settle()
		t.parted, t.said = true, ""
	}
	known.change(update{toolCall: c, Content: content})
	t.tellCalls()
	return known
}

// tellCalls tells the calls whose arguments were waited for.
func (t *teller) tellCalls() {
	for _, c := range t.pending {
		t.emit(cliagent.Event{
			Kind: cliagent.Called, ID: c.message, Sub: c.sub,
			Call: protocol.ToolCall{ID: c.id, Name: c.called(), Args: c.args()},
		})
		t.said = ""
	}
	t.pending = nil
}

// errorText is how agents write an error that they send as a message.
var errorText = lazyregexp.New(`^(Error: |HTTP [45]\d\d\b|API Error\b)`)

// failure is the message of an agent that has sent an error as its answer; else "".
func (t *teller) failure() string {
	text := strings.TrimSpace(t.said)
	switch {
	case t.broken:
		return cmp.Or(text, "the agent reports an error and does not say which")
	case t.tools == 0 && errorText().MatchString(text):
		return text
	}
	return ""
}

// answered reports whether a text came after the last tool event.
func (t *teller) answered() bool { return strings.TrimSpace(t.said) != "" }
