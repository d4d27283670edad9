package llm

import (
	"encoding/json"
	"strings"
)

// reasoningFields are the names under which endpoints send a model's reasoning.
var reasoningFields = []string{"reasoning_content", "reasoning", "reasoning_text"}

// thought adds a piece of reasoning. Only the first field that carries any
// counts: some endpoints send the same text in two.
func (a *assembler) thought(field string, raw json.RawMessage) {
	piece := text(raw)
	if a.field == "" && piece != "" {
		a.field = field
		delete(a.extra, otherEmpty(a.extra))
	}
	if a.field != "" && a.field != field {
		return
	}
	a.reasoning.WriteString(piece)
	a.extra.add(field, raw)
}

// otherEmpty is the reasoning field that came first but was empty, "" if there
// is none.
func otherEmpty(e extras) string {
	for _, field := range reasoningFields {
		if p := e[field]; p != nil && p.empty() {
			return field
		}
	}
	return ""
}

// readContent reads a message's content: a string, or a list of parts of which
// some may be thoughts.
func readContent(raw json.RawMessage) (content, thought string) {
	if raw[0] != '[' {
		return text(raw), ""
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	for _, p := range parts {
		switch {
		case len(p.Thinking) > 0:
			inner, _ := readContent(p.Thinking)
			thought += inner
		case p.Type == "thinking" || p.Type == "reasoning":
			thought += p.Text
		default:
			content += p.Text
		}
	}
	return content, thought
}

// splitThinking cuts off a leading <think> block: models on servers without a reasoning
// parser write it into the content, where it would come before an answer's frontmatter.
// Some templates swallow the opening tag; then the closing one is on a line of its own.
func splitThinking(content string) (rest, thought string) {
	trimmed := strings.TrimLeft(content, " \t\r\n")
	for _, tag := range []string{"think", "thinking"} {
		inner, ok := strings.CutPrefix(trimmed, "<"+tag+">")
		if !ok {
			continue
		}
		thought, rest, _ = strings.Cut(inner, "</"+tag+">")
		return strings.TrimLeft(rest, " \t\r\n"), strings.TrimSpace(thought)
	}
	before, after, ok := strings.Cut(content, "\n</think>\n")
	if ok && !strings.Contains(before, "```") && !strings.HasPrefix(trimmed, "---") {
		return strings.TrimLeft(after, " \t\r\n"), strings.TrimSpace(before)
	}
	return content, ""
}
