package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/roles"
)

// Message is one entry of a conversation, in a form that outlives the process:
// a session file holds messages as JSON.
type Message struct {
	Role       protocol.TurnRole `json:"role"`
	Content    string            `json:"content,omitempty"`
	ToolCalls  []ToolCall        `json:"toolCalls,omitempty"`
	ToolCallID string            `json:"toolCallId,omitempty"` // of the call that a tool message answers
	Reasoning  string            `json:"reasoning,omitempty"`  // for people; what goes back is in Extra
	// Source is the endpoint and model that wrote the message. Extra goes back
	// to that source alone: another one refuses or misreads it.
	Source string `json:"source,omitempty"`
	// Extra holds fields that this package does not interpret, such as
	// reasoning_content or reasoning_details.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"` // unique in the conversation
	Name string `json:"name"`
	// Args is the text that the model sent; [ParseArgs] reads it.
	Args string `json:"args"`
	// Extra holds fields that must go back, such as a thought signature.
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

// Tool tells the model about a tool.
type Tool struct {
	Name        string
	Description string
	Parameters  any // JSON Schema of an object
}

// Request is one question to a model.
type Request struct {
	// Messages and Tools must not be changed in place afterwards: what was written of
	// them is remembered. More messages may be added.
	Messages []Message
	// Tools stay declared in a request without calls: some endpoints refuse a
	// history with tool messages otherwise. NoCalls forbids their use.
	Tools   []Tool
	NoCalls bool
	// Force names the one tool that the reply must call; "": the model is free.
	// Not every endpoint obeys.
	Force string
	JSON  bool // the answer must be one JSON object
	// Watch is called, in the goroutine of Complete, whenever a piece of a
	// streamed reply has come; nil: not wanted. soFar returns what there is of it,
	// and is worth calling only now and then. A try that fails starts over.
	Watch func(soFar func() Message)
}

// Finish is why the model stopped.
type Finish string

// The reasons. A reply with calls counts as [FinishCalls] whatever the endpoint
// says, because endpoints disagree; only [FinishLength] is kept, since the last
// call may then be cut.
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
	Usage   protocol.Usage // of this reply; without tokens if the endpoint does not report them
	Model   string         // as the endpoint names it
	// Failures are the tries before this reply. They and Usage are also set with an
	// error.
	Failures []Failure
}

// Bill is what a reply cost, with the replies before it that were of no use.
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

// Failure is a try that led to no reply.
type Failure struct {
	Reason string
	Wait   time.Duration  // before the next one
	Usage  protocol.Usage // if the endpoint says that it cost something
}

// Empty reports that there is nothing in the reply: no text, no thought, no call.
func (r Response) Empty() bool {
	return r.Message.Content == "" && r.Message.Reasoning == "" && len(r.Message.ToolCalls) == 0
}

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

// Completer is what a role asks; a [Client] is one.
type Completer interface {
	Complete(ctx context.Context, req Request) (Response, error)
}

// Roles makes roles of one question each: the role's prompt and schema, and
// what it has to do, are put to the model, and its reply is the output as JSON.
// There are no tools. A reply that is no JSON is returned as text, which
// agentkit then asks to correct.
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

// JSONPrompt tells a model to answer with one JSON object of a schema, or to
// suspend.
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

// JSONResult reads a reply as the output of a role.
func JSONResult(resp Response) (agentkit.Result, error) {
	res := agentkit.Result{Usage: resp.Bill().Usage(), Detail: &protocol.Detail{Model: resp.Model}}
	text := unfence(strings.TrimSpace(resp.Message.Content))
	switch resp.Finish {
	case FinishRefusal:
		return res, fmt.Errorf("the model refuses: %s", resp.Message.Content)
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
