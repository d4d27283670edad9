package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// A group of messages is a system or assistant message with the tool results and user messages that follow it.

// groupLen returns the length of the first group in messages.
func groupLen(messages []Message) int {
	for i, m := range messages[1:] {
		if begins(m) {
			return i + 1
		}
	}
	return len(messages)
}

// groups returns the number of groups in a conversation.
func groups(messages []Message) int {
	n := min(len(messages), 1)
	for i := 1; i < len(messages); i++ {
		if begins(messages[i]) {
			n++
		}
	}
	return n
}

// begins reports whether a message begins a group. An empty reply is not encoded at all.
func begins(m Message) bool {
	switch m.Role {
	case protocol.TurnTool, protocol.TurnUser:
		return false
	case protocol.TurnAssistant:
		return m.Content != "" || len(m.ToolCalls) > 0
	}
	return true
}

// wireUsage is token usage under all field names in use.
type wireUsage struct {
	Total      usageparse.Tokens `json:"total_tokens"`
	Prompt     usageparse.Tokens `json:"prompt_tokens"`
	Completion usageparse.Tokens `json:"completion_tokens"`
	Cached     usageparse.Tokens `json:"cached_tokens"`           // Moonshot
	CacheHit   usageparse.Tokens `json:"prompt_cache_hit_tokens"` // DeepSeek
	CacheWrite usageparse.Tokens `json:"cache_write_tokens"`
	CacheMade  usageparse.Tokens `json:"cache_creation_input_tokens"` // LiteLLM, for Anthropic's models
	PromptMore struct {
		Cached     usageparse.Tokens `json:"cached_tokens"`
		CacheWrite usageparse.Tokens `json:"cache_write_tokens"`
		CacheMade  usageparse.Tokens `json:"cache_creation_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning usageparse.Tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost usageparse.Dollars `json:"cost"` // OpenRouter
}

// usage counts every token once: endpoints include cached ones in the prompt.
func (w *wireUsage) usage() protocol.Usage {
	u := protocol.Usage{Turns: 1}
	if w == nil {
		return u
	}
	read := max(w.PromptMore.Cached, w.CacheHit, w.Cached)
	write := max(w.PromptMore.CacheWrite, w.PromptMore.CacheMade, w.CacheWrite, w.CacheMade)
	u.CacheReadTokens, u.CacheWriteTokens = int64(read), int64(write)
	u.InputTokens = int64(max(w.Prompt-read-write, 0))
	u.OutputTokens = int64(w.Completion)
	u.ReasoningTokens = int64(w.CompletionMore.Reasoning)
	// Google and xAI count reasoning separately, which only the total shows.
	if rest := int64(w.Total - w.Prompt - w.Completion); rest > 0 && (rest == u.ReasoningTokens || u.ReasoningTokens+int64(read+write) == 0) {
		u.OutputTokens, u.ReasoningTokens = u.OutputTokens+rest, rest
	}
	u.CostUSD = w.Cost.USD()
	return u
}

// usage returns the cost of a reply, as reported by the endpoint or computed from the config's price.
func (c *Client) usage(w *wireUsage) protocol.Usage {
	u := w.usage()
	return u.Priced(c.endpoint.Price)
}

// ParseArgs parses the arguments of a tool call. It accepts what models are known to send instead of an
// object: nothing, null, an object encoded as a string, a code fence, trailing commas, raw control characters
// inside strings. Truncated JSON and two objects are errors, because guessing would do the wrong thing.
func ParseArgs(raw string) (map[string]any, error) {
	text := strings.TrimSpace(raw)
	if text == "" {
		return map[string]any{}, nil
	}
	args, err := strictArgs(text)
	if err == nil {
		return args, nil
	}
	repaired := repair(unfence(text))
	if args, again := strictArgs(repaired); again == nil {
		return args, nil
	}
	return nil, err
}

// strictArgs parses one JSON object, null, or a string that contains an object.
func strictArgs(text string) (map[string]any, error) {
	v, err := oneValue(text)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		if v, err = oneValue(s); err != nil {
			return nil, err
		}
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	}
	return nil, errors.New("want a JSON object")
}

// oneValue parses exactly one JSON value.
func oneValue(text string) (any, error) {
	if json.Valid([]byte(text)) { // report to the model what would otherwise be changed silently
		if err := exactjson.Check([]byte(text)); err != nil {
			return nil, err
		}
	}
	d := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("unexpected end of JSON")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("data after the JSON object at offset %d", d.InputOffset())
	}
	return v, nil
}

// unfence removes a Markdown code fence.
func unfence(text string) string {
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	if first, rest, ok := strings.Cut(body, "\n"); ok && !strings.Contains(first, "{") {
		body = rest
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
}

// repair escapes raw control characters in strings and drops commas before a closing bracket. It changes
// nothing else.
func repair(text string) string {
	var b strings.Builder
	inString, escaped := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString && c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		case !inString && c == ',' && closes(text[i+1:]):
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// closes reports whether the next token in text closes an object or a list.
func closes(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '}' || text[0] == ']')
}

// wireArgs returns a call's arguments in the form sent back to an endpoint: the model's own text if it is an
// object, so that a prompt cache hits, or else the parsed value. Chat templates on servers fail on anything
// but an object.
func wireArgs(raw string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &object) == nil && object != nil {
		return raw
	}
	args, err := ParseArgs(raw)
	if err != nil {
		return "{}"
	}
	b, err := marshal(args)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// marshal is json.Marshal without HTML escaping.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
