package llm

import (
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// marks say where a group tells the endpoint to keep in its prompt cache all that was
// said up to there (Anthropic's cache_control). The first message of a conversation
// is marked, the last, and the last of the question before: what that one has written
// to the cache, this one reads. Four marks are allowed.
type marks struct{ first, last bool }

// part is a text as a list of parts has it.
type part struct {
	Type  string            `json:"type"`
	Text  string            `json:"text"`
	Cache map[string]string `json:"cache_control"`
}

// mark marks a message as it is written, unless that one cannot be: it has no text, or
// is a reply.
func mark(message any, q quirks) any {
	switch m := message.(type) {
	case toolResult:
		if text, ok := m.Content.(string); ok && !q.noToolMarks {
			m.Content = marked(text)
		}
		return m
	case map[string]any:
		text, ok := m["content"].(string)
		if ok && strings.TrimSpace(text) != "" && m["role"] != protocol.TurnAssistant {
			m["content"] = marked(text)
		}
	}
	return message
}

func marked(text string) []part {
	return []part{{"text", text, map[string]string{"type": "ephemeral"}}}
}
