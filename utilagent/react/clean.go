package react

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/utilagent/llm"
)

// clean is a message without secrets, in all its parts: it goes into the session
// file, back to the model, to tools and into the detail.
func (r *run) clean(m llm.Message) llm.Message {
	if r.Redact == nil {
		return m
	}
	m.Content, m.Reasoning, m.ToolCallID = r.Redact(m.Content), r.Redact(m.Reasoning), r.Redact(m.ToolCallID)
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i, call := range m.ToolCalls {
		call.ID, call.Name, call.Args = r.Redact(call.ID), r.Redact(call.Name), r.Redact(call.Args)
		call.Extra = r.cleanExtra(call.Extra)
		m.ToolCalls[i] = call
	}
	m.Extra = r.cleanExtra(m.Extra)
	return m
}

func (r *run) cleanExtra(extra map[string]json.RawMessage) map[string]json.RawMessage {
	extra = maps.Clone(extra)
	for name, value := range extra {
		extra[name] = json.RawMessage(r.Redact(string(value)))
	}
	return extra
}
