package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// decoder decodes Claude Code's stream-json: one object per line, and each content block of a message on a
// separate line. Fields come in any order, and unknown ones are ignored.
type decoder struct {
	result  *line // the last line of type result
	spent   cliagent.Usage
	session string    // latest session ID
	replied bool      // the model has replied
	mark    string    // latest entry of the conversation
	resets  time.Time // when the limit that rejected a request resets, if reported in a field
	retry   *line     // latest retry, until anything else arrives
}

// line holds the fields of all types of lines.
type line struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	UUID    string `json:"uuid"`
	Replay  bool   `json:"isReplay"`           // confirms that it received our message
	Parent  string `json:"parent_tool_use_id"` // in a subagent's lines: the call that started it

	// system
	Model   string `json:"model"`
	Version string `json:"claude_code_version"`
	Attempt int    `json:"attempt"`
	Status  int    `json:"error_status"` // 0 if there was no response
	Error   string `json:"error"`

	Message *message `json:"message"` // assistant, user

	Limit struct {
		Status   string            `json:"status"`
		ResetsAt usageparse.Tokens `json:"resetsAt"` // Unix time in seconds
	} `json:"rate_limit_info"` // rate_limit_event

	// result
	IsError    bool                  `json:"is_error"`
	Result     string                `json:"result"`
	Structured any                   `json:"structured_output"`
	Errors     []json.RawMessage     `json:"errors"`
	APIStatus  int                   `json:"api_error_status"`
	Terminal   string                `json:"terminal_reason"`
	Stop       string                `json:"stop_reason"`
	Cost       usageparse.Dollars    `json:"total_cost_usd"`
	Usage      *usage                `json:"usage"`
	SinceLast  map[string]modelUsage `json:"model_usage_since_last_result"`
	ByModel    map[string]modelUsage `json:"modelUsage"`
}

// synthetic is the model name in error messages that Claude Code itself generates.
const synthetic = "<synthetic>"

// Line implements [cliagent.Decoder]. A line with an array contains all objects (--output-format json
// --verbose).
func (d *decoder) Line(text []byte) ([]cliagent.Event, bool) {
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		var items []json.RawMessage
		if json.Unmarshal(text, &items) != nil {
			return nil, false
		}
		var events []cliagent.Event
		for _, item := range items {
			more, _ := d.Line(item)
			events = append(events, more...)
		}
		return events, true
	}
	var l line
	if !cliagent.Object(text, &l) || l.Type == "" {
		return nil, false
	}
	if l.Session != "" {
		d.session = l.Session
	}
	return d.events(&l), true
}

func (d *decoder) events(l *line) []cliagent.Event {
	if l.Type == "system" && l.Subtype == "api_retry" {
		d.retry = l
		return []cliagent.Event{retrying(l)}
	}
	if l.Type != "system" {
		d.retry = nil
	}
	if l.Replay {
		return []cliagent.Event{{Kind: cliagent.MessageReceived, ID: l.UUID, Session: l.Session}}
	}
	switch l.Type {
	case "system":
		return system(l)
	case "assistant", "user":
		d.replied = d.replied || l.Type == "assistant" && l.Message != nil && l.Message.Model != synthetic
		if l.Parent == "" && l.Message != nil && l.Message.Model != synthetic {
			d.mark = l.UUID
		}
		return blocks(l)
	case "rate_limit_event":
		if l.Limit.Status == "rejected" && l.Limit.ResetsAt > 0 {
			d.resets = time.Unix(int64(l.Limit.ResetsAt), 0)
		}
	case "result":
		if d.result != nil && l.UUID != "" && l.UUID == d.result.UUID {
			return nil // reported twice, counted once
		}
		d.result = l
		d.spend(l)
		return []cliagent.Event{{Kind: cliagent.Done, Session: l.Session}}
	}
	return nil
}

func system(l *line) []cliagent.Event {
	switch l.Subtype {
	case "init":
		return []cliagent.Event{{Kind: cliagent.Started, Session: l.Session, Model: l.Model, Version: l.Version}}
	case "compact_boundary":
		return []cliagent.Event{{Kind: cliagent.Notice, Session: l.Session, Text: "claude summarised the " +
			"conversation so far"}}
	}
	return nil
}

// retrying reports a retry. Claude Code retries for minutes with a rejected key; one rejection is enough.
func retrying(l *line) cliagent.Event {
	kind := errorkind.OfStatus(l.Status)
	e := cliagent.Event{Kind: cliagent.Retrying, Session: l.Session, Status: l.Status}
	if kind == errorkind.Auth && l.Attempt >= 2 {
		e.Error, e.Text = kind, "the model's endpoint refuses the key"
	}
	return e
}

// message is a message from the model or the results of its tools.
type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"` // a string, or blocks
}

// block is a content block of a message.
type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	CallID   string          `json:"tool_use_id"`
	Content  json.RawMessage `json:"content"`
	IsError  bool            `json:"is_error"`
}

// blocks returns the events of a message.
func blocks(l *line) []cliagent.Event {
	if l.Message == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(l.Message.Content, &list) != nil {
		return l.events(block{Type: "text", Text: cliagent.TextOf(l.Message.Content)})
	}
	var events []cliagent.Event
	for _, raw := range list {
		var b block
		cliagent.Object(raw, &b)
		events = append(events, l.events(b)...)
	}
	return events
}

// events returns the events of a block.
func (l *line) events(b block) []cliagent.Event {
	e := cliagent.Event{Session: l.Session, Sub: l.Parent != ""}
	if !b.event(l, &e) {
		return nil
	}
	return []cliagent.Event{e}
}

// event sets the fields of an event for a block. It returns false if there is none.
func (b block) event(l *line, e *cliagent.Event) bool {
	if l.Type == "assistant" {
		e.ID = l.Message.ID
	}
	switch {
	case strings.HasSuffix(b.Type, "tool_result"):
		e.Kind, e.Call.ID, e.Text, e.Failed = cliagent.Returned, b.CallID, cliagent.TextOf(b.Content), b.IsError
	case l.Type != "assistant":
		return false // a message of Claude Code to itself, such as a subagent's task
	case l.Message.Model == synthetic:
		e.Kind, e.Text = cliagent.Notice, b.Text
	case b.Type == "text":
		e.Kind, e.Text, e.Model = cliagent.Text, b.Text, l.Message.Model
	case b.Type == "thinking":
		e.Kind, e.Text = cliagent.Reasoning, b.Thinking
	case strings.HasSuffix(b.Type, "tool_use"):
		e.Kind, e.Call = cliagent.Called, protocol.ToolCall{ID: b.ID, Name: b.Name, Args: cliagent.Arguments(b.Input)}
	default:
		return false
	}
	return true
}

// End implements [cliagent.Decoder]. The result line determines the outcome. The exit status does not: it is
// 0 after an interrupt, and 1 or 0 at the turn limit.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	if d.result == nil {
		return d.unfinished(e)
	}
	r := d.result
	out := r.outcome(e)
	if out.Kind != cliagent.OK {
		out.Message = cmp.Or(out.Message, r.Terminal, r.Subtype, "unknown reason")
	}
	d.limit(&out)
	out.Session, out.Mark = d.resumableSession(out), d.mark
	out.Usage = d.spent
	return out
}

// limit sets the time at which a plan's limit resets, which Claude Code reports before the line that fails.
func (d *decoder) limit(out *cliagent.Outcome) {
	if !d.resets.IsZero() && (out.Error == errorkind.RateLimit || out.Error == errorkind.Quota) {
		out.Error, out.ResetsAt = errorkind.Quota, d.resets
	}
}

// outcome returns the outcome from the result line. The subtype "success" means nothing: an error of the
// model's endpoint has it as well.
func (l *line) outcome(e cliagent.Exit) cliagent.Outcome {
	message := l.errorText()
	switch {
	case l.Subtype == "error_max_turns", l.Terminal == "max_turns":
		return cliagent.Outcome{Kind: cliagent.MaxTurns, Message: message}
	case l.Subtype == "error_max_budget_usd":
		return cliagent.Outcome{Kind: cliagent.Budget, Message: message}
	case l.Subtype == "error_max_structured_output_retries":
		return cliagent.Outcome{Kind: cliagent.Incomplete, Message: message}
	case strings.HasPrefix(l.Terminal, "aborted"):
		return cliagent.Outcome{Kind: cliagent.Interrupted, Message: message}
	case l.APIStatus >= 400:
		return cliagent.Fail(errorkind.Of(l.APIStatus, message), message, e)
	case l.IsError || strings.HasPrefix(l.Subtype, "error"):
		return cliagent.Fail(errorkind.OfText(message+"\n"+e.Output()), message, e)
	case l.Stop == "refusal":
		return cliagent.Outcome{Kind: cliagent.Refusal, Message: l.Result}
	case l.Structured == nil && (l.Stop == "max_tokens" || l.Stop == "model_context_window_exceeded"):
		return cliagent.Outcome{Kind: cliagent.Incomplete, Truncated: true, Message: "the answer was cut off: " + l.Stop}
	}
	return cliagent.Outcome{Kind: cliagent.OK, Final: l.Result, Value: l.Structured}
}

func (l *line) errorText() string {
	if l.Result != "" {
		return l.Result
	}
	var parts []string
	for _, e := range l.Errors {
		parts = append(parts, cliagent.TextOf(e))
	}
	return strings.Join(parts, "\n")
}

// unfinished returns the outcome without a result line.
func (d *decoder) unfinished(e cliagent.Exit) cliagent.Outcome {
	out := e.Unfinished()
	out.Message = cmp.Or(out.Message, "claude exited without its last line")
	if strings.Contains(e.Stderr, "root/sudo privileges") {
		out.Error = errorkind.Denied
		out.Hint = "if this machine is there for that: uwf config set agents.<alias>.env.IS_SANDBOX 1; else uwf config set agents.<alias>.permission edits"
	}
	if d.retry != nil {
		out = d.retry.gaveUp(e)
	}
	d.limit(&out)
	out.Session = d.resumableSession(out)
	return out
}

// gaveUp returns the outcome of a run that ended during retries.
func (l *line) gaveUp(e cliagent.Exit) cliagent.Outcome {
	if l.Status == 0 {
		return cliagent.Fail(errorkind.Server, cmp.Or(l.Error, "no answer")+": the model's endpoint was unreachable in all attempts", e)
	}
	return cliagent.Fail(errorkind.OfStatus(l.Status), fmt.Sprintf("the model's endpoint answered with status %d "+
		"in all attempts", l.Status), e)
}

// resumableSession returns the session ID, or "" if no model has replied in the session, because a failed start prints
// the ID of no session.
func (d *decoder) resumableSession(out cliagent.Outcome) string {
	if d.replied || out.Kind == cliagent.OK {
		return d.session
	}
	return ""
}

// usage is the usage of this run.
type usage struct {
	Input      usageparse.Tokens `json:"input_tokens"`
	CacheWrite usageparse.Tokens `json:"cache_creation_input_tokens"`
	CacheRead  usageparse.Tokens `json:"cache_read_input_tokens"`
	Output     usageparse.Tokens `json:"output_tokens"`
}

func (u *usage) sum() usageparse.Tokens {
	if u == nil {
		return 0
	}
	return u.Input + u.CacheWrite + u.CacheRead + u.Output
}

type modelUsage struct {
	Input      usageparse.Tokens  `json:"inputTokens"`
	CacheWrite usageparse.Tokens  `json:"cacheCreationInputTokens"`
	CacheRead  usageparse.Tokens  `json:"cacheReadInputTokens"`
	Output     usageparse.Tokens  `json:"outputTokens"`
	Thinking   usageparse.Tokens  `json:"thinkingTokens"`
	Cost       usageparse.Dollars `json:"costUSD"`
}

// spend adds the cost in a result line. There is one such line each time Claude Code finishes, since a
// background task can make it continue. Newer versions report what each line adds, including side calls;
// their modelUsage and total_cost_usd are totals for the session, so a resumed call that is rejected reports
// an empty addition with the session's totals. For older versions the latest line is used, with its usage by
// model if that is higher: "usage" lacks requests repeated without streaming, and the cost of a run that
// ended at a cost limit.
func (d *decoder) spend(l *line) {
	switch {
	case len(l.SinceLast) > 0, l.SinceLast != nil && (d.spent.Usage != nil || l.Usage.sum() == 0):
		u := sum(l.SinceLast)
		if len(l.SinceLast) == 0 {
			u.CostUSD = new(float64)
		}
		if d.spent.Usage != nil {
			u = d.spent.Add(u)
		}
		d.spent.Usage = &u
	case l.Usage != nil:
		u := protocol.Usage{
			InputTokens: int64(l.Usage.Input), CacheReadTokens: int64(l.Usage.CacheRead),
			CacheWriteTokens: int64(l.Usage.CacheWrite), OutputTokens: int64(l.Usage.Output),
		}
		if l.SinceLast == nil {
			if all := sum(l.ByModel); all.Tokens() > u.Tokens() {
				u = all
			}
			u.CostUSD = l.Cost.USD()
		}
		d.spent.Usage = &u
	}
}

// sum adds up the usage of all models. If one cost is unknown, the sum is.
func sum(models map[string]modelUsage) (u protocol.Usage) {
	cost, priced := 0.0, len(models) > 0
	for _, name := range slices.Sorted(maps.Keys(models)) { // in a fixed order, because floating-point sums depend on it
		m := models[name]
		u.InputTokens += int64(m.Input)
		u.CacheReadTokens += int64(m.CacheRead)
		u.CacheWriteTokens += int64(m.CacheWrite)
		u.OutputTokens += int64(m.Output)
		u.ReasoningTokens += int64(m.Thinking)
		if usd := m.Cost.USD(); usd != nil {
			cost += *usd
		} else {
			priced = false
		}
	}
	if cost = protocol.RoundUSD(cost); priced {
		u.CostUSD = &cost
	}
	return u
}
