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

// wireMessages writes a conversation in the order and form that the strictest
// endpoints want: every call answered once, right after it and in order; no
// empty messages; consecutive user messages joined. What the request before had
// in the same place is taken from there.
func (c *Client) wireMessages(messages []Message, marked bool, before, now *written) ([][]byte, error) {
	var list [][]byte
	left := groups(messages)
	for len(messages) > 0 {
		n := groupLen(messages)
		m := marks{first: marked && len(now.groups) == 0, last: marked && left <= 2}
		left--
		g, ok := before.group(len(now.groups), now.q, m, messages[:n])
		if !ok {
			wire, err := c.wireGroup(messages[:n], m, now.q)
			if err != nil {
				return nil, err
			}
			g = group{messages: messages[:n:n], marks: m, wire: wire}
		}
		now.groups = append(now.groups, g)
		if len(g.wire) > 0 {
			list = append(list, g.wire)
		}
		messages = messages[n:]
	}
	return list, nil
}

// wireGroup writes a group as JSON texts with commas between them.
func (c *Client) wireGroup(messages []Message, m marks, q quirks) ([]byte, error) {
	var list []any
	var said []string // by users, one after the other
	first := messages[0]
	switch {
	case !begins(first): // no more than what follows it
	case first.Role == protocol.TurnAssistant && q.flatten && len(first.ToolCalls) > 0 && first.Source != c.Source():
		text, got := flatten(first, results(first.ToolCalls, messages[1:]))
		list = append(list, map[string]any{"role": protocol.TurnAssistant, "content": text})
		said = append(said, got)
	case first.Role == protocol.TurnAssistant:
		list = append(list, c.wireAssistant(first, q))
		for _, answer := range results(first.ToolCalls, messages[1:]) {
			list = append(list, answer)
		}
	default:
		list = append(list, map[string]any{"role": first.Role, "content": first.Content})
	}
	for _, m := range messages {
		if m.Role == protocol.TurnUser {
			said = append(said, m.Content)
		}
	}
	if len(said) > 0 {
		if _, answered := last(list).(toolResult); answered && q.bridge {
			list = append(list, map[string]any{"role": protocol.TurnAssistant, "content": bridge})
		}
		list = append(list, map[string]any{"role": protocol.TurnUser, "content": strings.Join(said, "\n\n")})
	}
	if m.first && len(list) > 0 {
		list[0] = mark(list[0], q)
	}
	if m.last && len(list) > 1 {
		list[len(list)-1] = mark(list[len(list)-1], q)
	}
	return joined(list)
}

func last(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

func joined(list []any) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	b, err := marshal(list)
	if err != nil {
		return nil, err
	}
	return b[1 : len(b)-1], nil // without the brackets of the list
}

// toolResult is a tool's message on the wire.
type toolResult struct {
	Role    protocol.TurnRole `json:"role"`
	ID      string            `json:"tool_call_id"`
	Content any               `json:"content"` // a text
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

// flatten reports calls and their results in plain text.
func flatten(m Message, answers []toolResult) (said, got string) {
	said, got = m.Content, "The results:"
	for i, r := range answers {
		call := m.ToolCalls[i]
		said += fmt.Sprintf("\n\nI call the tool %s with %s", wireName(call.Name), wireArgs(call.Args))
		got += fmt.Sprintf("\n\n%s: %v", wireName(call.Name), r.Content)
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
