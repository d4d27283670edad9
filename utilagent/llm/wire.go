package llm

import (
	"bytes"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// toolResult is a tool's message on the wire.
type toolResult struct {
	Role    protocol.TurnRole `json:"role"`
	ID      string            `json:"tool_call_id"`
	Content string            `json:"content"`
}

// wire collects the messages of a request. What a model has said and what its
// tools have answered does not change from request to request, and is most of a
// long conversation: it is written once and taken from the request before. So a
// request costs what is new in it.
type wire struct {
	list [][]byte
	last protocol.TurnRole
	text []string // user messages that are joined
	err  error

	cache, next *written
}

// written is what a request wrote, for the next one.
type written struct {
	q         quirks
	exchanges []exchange
}

// exchange is a model's message with the answers to its calls.
type exchange struct {
	message Message
	answers []toolResult
	wire    []byte
}

// equal compares by value. Strings that are the same in memory, as they are
// from request to request, are compared in no time.
func (e exchange) equal(m Message, answers []toolResult) bool {
	have := e.message
	return have.Content == m.Content && have.Source == m.Source && equalExtra(have.Extra, m.Extra) &&
		slices.EqualFunc(have.ToolCalls, m.ToolCalls, func(a, b ToolCall) bool {
			return a.ID == b.ID && a.Name == b.Name && a.Args == b.Args && equalExtra(a.Extra, b.Extra)
		}) && slices.Equal(e.answers, answers)
}

func equalExtra[V ~[]byte](a, b map[string]V) bool {
	return maps.EqualFunc(a, b, func(a, b V) bool { return bytes.Equal(a, b) })
}

// exchange adds a model's message with its answers.
func (w *wire) exchange(m Message, answers []toolResult, messages func() []any) {
	w.flush()
	w.last = protocol.TurnAssistant
	if len(answers) > 0 {
		w.last = protocol.TurnTool
	}
	made := exchange{message: m, answers: answers}
	if old, ok := w.before(len(w.next.exchanges)); ok && old.equal(m, answers) {
		made.wire = old.wire
	} else {
		for _, message := range messages() {
			made.wire = append(made.wire, w.encode(message)...)
			made.wire = append(made.wire, ',')
		}
		made.wire = made.wire[:len(made.wire)-1]
	}
	w.next.exchanges = append(w.next.exchanges, made)
	w.list = append(w.list, made.wire)
}

// before is what the request before had in a place.
func (w *wire) before(i int) (exchange, bool) {
	if w.cache == nil || w.cache.q != w.next.q || i >= len(w.cache.exchanges) {
		return exchange{}, false
	}
	return w.cache.exchanges[i], true
}

// user adds a user message. Some endpoints want something between it and a
// tool's result.
func (w *wire) user(content string, bridged bool) {
	if w.last == protocol.TurnTool && bridged {
		w.add(map[string]any{"role": protocol.TurnAssistant, "content": bridge})
	}
	w.last = protocol.TurnUser
	w.text = append(w.text, content)
}

// add adds any other message.
func (w *wire) add(message map[string]any) {
	w.flush()
	w.last, _ = message["role"].(protocol.TurnRole)
	w.list = append(w.list, w.encode(message))
}

// flush writes the user messages that came one after the other as one.
func (w *wire) flush() {
	if len(w.text) == 0 {
		return
	}
	joined := w.text[0]
	for _, more := range w.text[1:] {
		joined += "\n\n" + more
	}
	w.text = nil
	w.list = append(w.list, w.encode(map[string]any{"role": protocol.TurnUser, "content": joined}))
}

func (w *wire) encode(v any) []byte {
	b, err := marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	return b
}
