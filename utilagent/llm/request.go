package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// What stands in for a text that endpoints do not accept empty.
const (
	noOutput = "(no output)"
	noResult = "Error: no result was recorded for this call. Make it again if you need it."
	bridge   = "Understood."
)

// encode writes the body of a request. Equal conversations give equal bytes, so
// that a provider's prompt cache hits.
func (c *Client) encode(req Request, q quirks) ([]byte, error) {
	body := map[string]any{"model": c.endpoint.Model, "stream": !q.noStream}
	if !q.noStream && !q.noStreamOptions {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	if len(req.Tools) > 0 {
		body["tools"] = wireTools(req.Tools)
		if !q.noToolChoice {
			body["tool_choice"] = choice(req)
		}
	}
	if req.JSON && !q.noJSONMode {
		body["response_format"] = map[string]any{"type": "json_object"}
	}
	rest, err := marshal(body)
	if err != nil {
		return nil, err
	}
	messages, err := c.wireMessages(req.Messages, q)
	if err != nil {
		return nil, err
	}
	size := len(rest) + 20
	for _, m := range messages {
		size += len(m) + 1
	}
	b := append(make([]byte, 0, size), `{"messages":[`...)
	for i, m := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return append(append(b, `],`...), rest[1:]...), nil
}

func choice(req Request) any {
	switch {
	case req.NoCalls:
		return "none"
	case req.Force != "":
		return map[string]any{"type": "function", "function": map[string]any{"name": req.Force}}
	}
	return "auto"
}

func wireTools(tools []Tool) []any {
	list := make([]any, 0, len(tools))
	for _, t := range tools {
		list = append(list, map[string]any{"type": "function", "function": map[string]any{
			"name": t.Name, "description": t.Description, "parameters": t.Parameters,
		}})
	}
	return list
}

// wireMessages writes a conversation in the order and form that the strictest
// endpoints want: every call answered once, right after it and in order; no
// empty messages; consecutive user messages joined.
func (c *Client) wireMessages(messages []Message, q quirks) ([][]byte, error) {
	w := wire{cache: c.cache.Load(), next: &written{q: q, exchanges: make([]exchange, 0, len(messages)/2)}}
	for i, m := range messages {
		switch m.Role {
		case protocol.TurnTool: // answered with its call
		case protocol.TurnAssistant:
			if m.Content == "" && len(m.ToolCalls) == 0 {
				continue
			}
			answers := results(m.ToolCalls, messages[i+1:])
			if q.flatten && len(m.ToolCalls) > 0 && m.Source != c.Source() {
				said, got := flatten(m, answers)
				w.add(map[string]any{"role": protocol.TurnAssistant, "content": said})
				w.user(got, false)
				continue
			}
			w.exchange(m, answers, func() []any {
				list := []any{c.wireAssistant(m, q)}
				for _, r := range answers {
					list = append(list, r)
				}
				return list
			})
		case protocol.TurnUser:
			w.user(m.Content, q.bridge)
		default:
			w.add(map[string]any{"role": m.Role, "content": m.Content})
		}
	}
	w.flush()
	c.cache.Store(w.next)
	return w.list, w.err
}

// results are the tool messages that answer calls, in the calls' order.
func results(calls []ToolCall, following []Message) []toolResult {
	if len(calls) == 0 {
		return nil
	}
	texts := map[string]string{}
	for _, m := range following {
		if m.Role != protocol.TurnTool {
			break
		}
		texts[m.ToolCallID] = m.Content
	}
	list := make([]toolResult, 0, len(calls))
	for _, call := range calls {
		text, ok := texts[call.ID]
		if !ok {
			text = noResult
		}
		if strings.TrimSpace(text) == "" {
			text = noOutput
		}
		list = append(list, toolResult{Role: protocol.TurnTool, ID: call.ID, Content: text})
	}
	return list
}

// flatten tells of calls and their results in plain text.
func flatten(m Message, answers []toolResult) (said, got string) {
	said, got = m.Content, "The results:"
	for i, r := range answers {
		call := m.ToolCalls[i]
		said += fmt.Sprintf("\n\nI call the tool %s with %s", wireName(call.Name), wireArgs(call.Args))
		got += fmt.Sprintf("\n\n%s: %s", wireName(call.Name), r.Content)
	}
	return strings.TrimSpace(said), got
}

// wireAssistant writes a reply as its own endpoint wants it back.
func (c *Client) wireAssistant(m Message, q quirks) map[string]any {
	w := map[string]any{}
	own := m.Source == c.Source() && !q.noExtra
	if own {
		copyExtra(w, m.Extra)
	}
	if _, ok := w["reasoning_content"]; !ok && q.emptyReasoning {
		w["reasoning_content"] = ""
	}
	w["role"] = m.Role
	w["content"] = m.Content
	if len(m.ToolCalls) == 0 {
		return w
	}
	if m.Content == "" {
		w["content"] = nil
	}
	calls := make([]any, 0, len(m.ToolCalls))
	for _, call := range m.ToolCalls {
		wc := map[string]any{}
		if own {
			copyExtra(wc, call.Extra)
		}
		wc["id"], wc["type"] = call.ID, "function"
		wc["function"] = map[string]any{"name": wireName(call.Name), "arguments": wireArgs(call.Args)}
		calls = append(calls, wc)
	}
	w["tool_calls"] = calls
	return w
}

func copyExtra(to map[string]any, extra map[string]json.RawMessage) {
	for k, v := range extra {
		to[k] = v
	}
}

// wireName replaces what endpoints refuse in a tool's name: a model that made a
// name up must not make the whole conversation unusable.
func wireName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 64)]
}
