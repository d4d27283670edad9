package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/roles"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// Message is one entry of a conversation. Session files store messages as JSON.
type Message struct {
	Role       protocol.TurnRole `json:"role"`
	Content    string            `json:"content,omitempty"`
	ToolCalls  []ToolCall        `json:"toolCalls,omitempty"`
	ToolCallID string            `json:"toolCallId,omitempty"` // ID of the call that a tool message answers
	Reasoning  string            `json:"reasoning,omitempty"`  // for display; the form to send back is in Extra
	// Source is the endpoint and model that wrote the message. Extra is sent only to that source: another one
	// rejects or misreads it.
	Source string `json:"source,omitempty"`
	// Extra holds fields that this package does not interpret, such as reasoning_content or
	// reasoning_details.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// ToolCall is a call of a tool that the model asks for.
type ToolCall struct {
	ID   string `json:"id"` // unique in the conversation
	Name string `json:"name"`
	// Args is the text that the model sent; [ParseArgs] parses it.
	Args string `json:"args"`
	// Extra holds fields that must be sent back, such as a thought signature.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// System returns a system message.
func System(text string) Message { return Message{Role: protocol.TurnSystem, Content: text} }

// User returns a user message.
func User(text string) Message { return Message{Role: protocol.TurnUser, Content: text} }

// ToolResult returns the answer to a tool call.
func ToolResult(id, text string) Message {
	return Message{Role: protocol.TurnTool, ToolCallID: id, Content: text}
}

// Tool declares a tool to the model.
type Tool struct {
	Name        string
	Description string
	Parameters  any // JSON Schema of an object
}

// Request is a request to a model.
type Request struct {
	Messages []Message
	// Tools are declared even in a request with NoCalls, which forbids their use: some endpoints reject a
	// history with tool messages otherwise.
	Tools   []Tool
	NoCalls bool
	// Force is the tool that the reply must call, or "". Not every endpoint obeys.
	Force string
	JSON  bool // the answer must be one JSON object
	// Watch, if not nil, is called in the goroutine of Complete for each piece of a streamed reply. soFar
	// returns the reply so far; it is expensive, so call it only now and then. After a failed try the reply
	// starts over.
	Watch func(soFar func() Message)
}

// Finish is the reason why the model stopped.
type Finish string

// Finish reasons. A reply with calls is [FinishCalls] whatever the endpoint reports, because endpoints
// disagree; only [FinishLength] is kept, since the last call may then be truncated.
const (
	FinishStop    Finish = "stop"
	FinishCalls   Finish = "tool_calls"
	FinishLength  Finish = "length"
	FinishRefusal Finish = "refusal" // Content is the model's refusal
)

// Response is a model's reply.
type Response struct {
	Message Message
	Finish  Finish
	Usage   protocol.Usage // of this reply; without tokens if not reported
	Model   string         // as reported by the endpoint
	// Failures lists the failed tries before this reply. They and Usage are also set with an error.
	Failures []Failure
}

// Bill returns the cost of a reply, including the failed tries before it.
func (r Response) Bill() protocol.Bill {
	var b protocol.Bill
	for _, f := range r.Failures {
		if f.Usage.IfKnown() != nil && f.Usage.Turns > 0 {
			b.Add(&f.Usage)
		}
	}
	if r.Usage.Turns > 0 {
		b.Add(&r.Usage)
	}
	return b
}

// Failure is a failed try.
type Failure struct {
	Reason string
	Wait   time.Duration  // before the next try
	Usage  protocol.Usage // if the endpoint reported a cost
}

// Empty reports whether the reply has no text, reasoning or calls.
func (r Response) Empty() bool {
	return r.Message.Content == "" && r.Message.Reasoning == "" && len(r.Message.ToolCalls) == 0
}

// Placeholders for texts that endpoints reject if empty.
const (
	noOutput = "(no output)"
	noResult = "Error: no result was recorded for this call. Make it again if you need it."
	bridge   = "Understood."
)

// wireMessages passes a conversation to put, in the order and form that the strictest endpoints require: every call
// answered once, right after it and in order; no empty messages; consecutive user messages joined.
//
// With marked, it asks the endpoint to cache the prompt (Anthropic's cache_control) up to the first message, up to
// the last one, and up to the last one of the previous request, whose cache this request reads. Four marks are
// allowed.
func (c *Client) wireMessages(messages []Message, marked bool, q quirks, put func(message any) error) error {
	first := true
	for left := groups(messages); left > 0; left-- {
		n := groupLen(messages)
		group := c.wireGroup(messages[:n], q)
		if marked && first && len(group) > 0 {
			group[0] = mark(group[0], q)
		}
		if marked && left <= 2 && len(group) > 1 {
			group[len(group)-1] = mark(group[len(group)-1], q)
		}
		for _, message := range group {
			if err := put(message); err != nil {
				return err
			}
		}
		first, messages = false, messages[n:]
	}
	return nil
}

// wireGroup encodes a group.
func (c *Client) wireGroup(messages []Message, q quirks) (list []any) {
	var said []string // consecutive user messages
	first := messages[0]
	switch {
	case !begins(first): // only the messages that follow it
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
	return list
}

func last(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// toolResult is the encoding of a tool message.
type toolResult struct {
	Role    protocol.TurnRole `json:"role"`
	ID      string            `json:"tool_call_id"`
	Content any               `json:"content"` // a string
}

// results returns the tool messages that answer calls, in the calls' order.
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

// flatten returns calls and their results as plain text.
func flatten(m Message, answers []toolResult) (said, got string) {
	said, got = m.Content, "The results:"
	for i, r := range answers {
		call := m.ToolCalls[i]
		said += fmt.Sprintf("\n\nI call the tool %s with %s", wireName(call.Name), wireArgs(call.Args))
		got += fmt.Sprintf("\n\n%s: %v", wireName(call.Name), r.Content)
	}
	return strings.TrimSpace(said), got
}

// wireAssistant encodes a reply for the endpoint that wrote it.
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

// wireName replaces characters that endpoints reject in a tool's name, so that a name made up by the model
// does not make the whole conversation unusable.
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

// Completer sends a request to a model; [Client] implements it.
type Completer interface {
	Complete(ctx context.Context, req Request) (Response, error)
}

// Roles returns a maker of roles with a single request: it sends the role's prompt, schema and instructions,
// and the reply is the output as JSON. There are no tools. A reply that is not JSON is returned as text,
// which agentkit then asks to correct.
func Roles(model Completer) roles.Maker {
	return func(prompt string, schema any) roles.Func {
		return func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			id, err := runenv.Of(ctx).NewID()
			if err != nil {
				return agentkit.Result{}, err
			}
			system, err := JSONPrompt(prompt, schema)
			if err != nil {
				return agentkit.Result{}, err
			}
			resp, err := model.Complete(ctx, Request{Messages: []Message{System(system), User(req.User)}, JSON: true})
			if err != nil {
				return agentkit.Result{}, err
			}
			res, err := JSONResult(resp)
			res.SessionID = id
			if err != nil {
				return res, err
			}
			return res, req.Turn(ctx, protocol.Turn{
				Role: protocol.TurnAssistant, Content: resp.Message.Content, Reasoning: resp.Message.Reasoning, Usage: resp.Usage.IfKnown(),
			})
		}
	}
}

// JSONPrompt returns a prompt that asks the model to answer with one JSON object of a schema, or to suspend.
func JSONPrompt(prompt string, schema any) (string, error) {
	b, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return "", fmt.Errorf("schema of the role: %w", err)
	}
	return strings.TrimSpace(prompt) + "\n\n" + fmt.Sprintf(jsonAnswer, b, protocol.StatusKey, protocol.SuspendNode), nil
}

const jsonAnswer = "## Deliverable Format\n\n" +
	"Reply with exactly one JSON value that satisfies this JSON Schema, and nothing else:\n\n```json\n%s\n```\n\n" +
	"If only a person can answer or decide, do not guess. Reply with this instead, and the thread waits for the answer:\n\n" +
	"```json\n{%q: %q, \"reason\": \"<what you need, from whom, and why>\"}\n```"

// JSONResult converts a reply to the output of a role.
func JSONResult(resp Response) (agentkit.Result, error) {
	res := agentkit.Result{Usage: resp.Bill().Usage(), Detail: &protocol.Detail{Model: resp.Model}}
	text := unfence(strings.TrimSpace(resp.Message.Content))
	switch resp.Finish {
	case FinishRefusal:
		return res, fmt.Errorf("the model refused: %s", resp.Message.Content)
	case FinishLength:
		return res, fmt.Errorf("the reply was cut off at the model's limit after %d characters", len(text))
	}
	if v, err := oneValue(text); err == nil && v != nil {
		res.Value = v
		return res, nil
	}
	res.Output = resp.Message.Content
	return res, nil
}

// reasoningFields are the names that endpoints use for a model's reasoning.
var reasoningFields = []string{"reasoning_content", "reasoning", "reasoning_text"}

// thought adds a piece of reasoning. Only the first field with content is used, because some endpoints send
// the same text in two.
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

// otherEmpty returns the reasoning field that came first but was empty, or "".
func otherEmpty(e extras) string {
	for _, field := range reasoningFields {
		if pieces := e[field]; len(pieces) > 0 && !slices.ContainsFunc(pieces, func(p json.RawMessage) bool { return string(p) != `""` }) {
			return field
		}
	}
	return ""
}

// readContent decodes a message's content: a string, or a list of parts, some of which may be reasoning.
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

// splitThinking cuts off a leading <think> block: models on servers without a reasoning parser write it into
// the content, before an answer's frontmatter. Some templates omit the opening tag; the closing one is then
// on a separate line.
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

// part is a text in the form of a list of parts.
type part struct {
	Type  string            `json:"type"`
	Text  string            `json:"text"`
	Cache map[string]string `json:"cache_control"`
}

// mark marks an encoded message, unless it has no text or is a reply.
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
