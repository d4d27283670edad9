package llm

import (
	"encoding/json"
	"strings"
)

// reasoningFields are the names under which endpoints send what a model thinks.
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
	a.extra = mergeExtra(a.extra, field, raw)
}

// otherEmpty is the reasoning field that came first but was empty, "" if there
// is none.
func otherEmpty(extra map[string]json.RawMessage) string {
	for _, field := range reasoningFields {
		if string(extra[field]) == `""` {
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

// splitThinking takes a leading <think> block out of a content: models on
// servers without a reasoning parser write it there, and an answer's
// frontmatter would not be at its beginning. Some templates swallow the opening
// tag; then the closing one stands on a line of its own.
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

// mergeExtra adds a field, or goes on with one that came in pieces: strings are
// joined, lists are appended to, of anything else the last value counts.
func mergeExtra(extra map[string]json.RawMessage, field string, raw json.RawMessage) map[string]json.RawMessage {
	if extra == nil {
		extra = map[string]json.RawMessage{}
	}
	old, ok := extra[field]
	if !ok {
		extra[field] = append(json.RawMessage(nil), raw...)
		return extra
	}
	var a, b any
	if json.Unmarshal(old, &a) != nil || json.Unmarshal(raw, &b) != nil {
		return extra
	}
	if merged, err := marshal(mergeValues(a, b)); err == nil {
		extra[field] = merged
	}
	return extra
}

func mergeValues(a, b any) any {
	switch b := b.(type) {
	case string:
		if a, ok := a.(string); ok {
			return a + b
		}
	case []any:
		if a, ok := a.([]any); ok {
			return mergeLists(a, b)
		}
	}
	return b
}

// mergeLists appends the entries of b, except those that go on with an entry of
// the same index: a stream of reasoning_details sends the text in pieces and
// the signature last.
func mergeLists(a, b []any) []any {
	for _, entry := range b {
		piece, ok := entry.(map[string]any)
		if !ok || len(a) == 0 {
			a = append(a, entry)
			continue
		}
		last, ok := a[len(a)-1].(map[string]any)
		if !ok || piece["index"] == nil || last["index"] != piece["index"] || last["type"] != piece["type"] {
			a = append(a, entry)
			continue
		}
		for k, v := range piece {
			last[k] = mergePart(k, last[k], v)
		}
	}
	return a
}

// mergePart joins what is text; the other fields of a piece repeat the same
// value in every piece.
func mergePart(field string, old, piece any) any {
	a, isText := old.(string)
	b, both := piece.(string)
	if isText && both && (field == "text" || field == "summary" || field == "data") {
		return a + b
	}
	if piece == nil {
		return old
	}
	return piece
}
