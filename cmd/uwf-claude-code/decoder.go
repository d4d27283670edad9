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

// decoder reads claude's stream-json: one object a line, each content block of a
// message in a line of its own. Fields come in any order, and what is not known
// is passed over.
type decoder struct {
	result  *line // the last line of type result
	spent   cliagent.Usage
	session string    // as told last
	spoke   bool      // the model has
	mark    string    // the newest entry of the conversation
	resets  time.Time // when a limit that refused a request is reset, as the program says in a field
	retry   *line     // a request that was repeated last, until something else came
}

// line is what we read of a line, of whatever type.
type line struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	UUID    string `json:"uuid"`
	Replay  bool   `json:"isReplay"`           // it has read this message of ours
	Parent  string `json:"parent_tool_use_id"` // of a sub-agent's lines: the call that began it

	// system
	Model   string `json:"model"`
	Version string `json:"claude_code_version"`
	Attempt int    `json:"attempt"`
	Status  int    `json:"error_status"` // 0: there was no answer
	Error   string `json:"error"`

	Message *message `json:"message"` // assistant, user

	Limit struct {
		Status   string            `json:"status"`
		ResetsAt usageparse.Tokens `json:"resetsAt"` // seconds since 1970
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

// synthetic is the model of messages that claude makes up to tell of errors.
const synthetic = "<synthetic>"

// Line implements [cliagent.Decoder]. A line that is an array holds what else
// comes in lines (--output-format json --verbose).
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

// events are what a line tells.
func (d *decoder) events(l *line) []cliagent.Event {
	if l.Type == "system" && l.Subtype == "api_retry" {
		d.retry = l
		return []cliagent.Event{retrying(l)}
	}
	if l.Type != "system" {
		d.retry = nil
	}
	if l.Replay {
		return []cliagent.Event{{Kind: cliagent.Heard, ID: l.UUID, Session: l.Session}}
	}
	switch l.Type {
	case "system":
		return system(l)
	case "assistant", "user":
		d.spoke = d.spoke || l.Type == "assistant" && l.Message != nil && l.Message.Model != synthetic
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
			return nil // told twice, spent once
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
		return []cliagent.Event{{Kind: cliagent.Notice, Session: l.Session, Text: "claude has summarised the conversation so far"}}
	}
	return nil
}

// retrying reports a request that is repeated. claude repeats one whose key is
// refused for minutes; once is enough.
func retrying(l *line) cliagent.Event {
	kind := errorkind.OfStatus(l.Status)
	e := cliagent.Event{Kind: cliagent.Retrying, Session: l.Session, Status: l.Status}
	if kind == errorkind.Auth && l.Attempt >= 2 {
		e.Error, e.Text = kind, "the model's endpoint refuses the key"
	}
	return e
}

// message is a message of the model, or what came back from its tools.
type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"` // a text, or blocks
}

// block is a piece of a message.
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

// blocks are the events of a message.
func blocks(l *line) []cliagent.Event {
	if l.Message == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(l.Message.Content, &list) != nil {
		return l.tell(block{Type: "text", Text: cliagent.TextOf(l.Message.Content)})
	}
	var events []cliagent.Event
	for _, raw := range list {
		var b block
		cliagent.Object(raw, &b)
		events = append(events, l.tell(b)...)
	}
	return events
}

// tell is what a block tells, if anything.
func (l *line) tell(b block) []cliagent.Event {
	e := cliagent.Event{Session: l.Session, Sub: l.Parent != ""}
	if !b.event(l, &e) {
		return nil
	}
	return []cliagent.Event{e}
}

// event fills in what a block tells; false if that is nothing.
func (b block) event(l *line, e *cliagent.Event) bool {
	if l.Type == "assistant" {
		e.ID = l.Message.ID
	}
	switch {
	case strings.HasSuffix(b.Type, "tool_result"):
		e.Kind, e.Call.ID, e.Text, e.Failed = cliagent.Returned, b.CallID, cliagent.TextOf(b.Content), b.IsError
	case l.Type != "assistant":
		return false // what claude tells itself, such as a sub-agent's task
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

// End implements [cliagent.Decoder]. The result line decides, not the exit
// status: that is 0 after an interrupt, and 1 or 0 at the limit of turns.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	if d.result == nil {
		return d.unfinished(e)
	}
	r := d.result
	out := r.outcome(e)
	if out.Kind != cliagent.OK {
		out.Message = cmp.Or(out.Message, r.Terminal, r.Subtype, "it does not say why")
	}
	d.limit(&out)
	out.Session, out.Mark = d.canGoOn(out), d.mark
	out.Usage = d.spent
	return out
}

// limit adds when the limit of a plan is reset: claude names the second before the line that fails.
func (d *decoder) limit(out *cliagent.Outcome) {
	if !d.resets.IsZero() && (out.Error == errorkind.RateLimit || out.Error == errorkind.Quota) {
		out.Error, out.ResetsAt = errorkind.Quota, d.resets
	}
}

// outcome reads the result line. "success" as subtype says nothing: an error of
// the model's endpoint has it, too.
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
		return cliagent.Fail(errorkind.OfText(message+"\n"+e.Said()), message, e)
	case l.Stop == "refusal":
		return cliagent.Outcome{Kind: cliagent.Refusal, Message: l.Result}
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

// unfinished is the outcome without a result line.
func (d *decoder) unfinished(e cliagent.Exit) cliagent.Outcome {
	out := e.Unfinished()
	out.Message = cmp.Or(out.Message, "claude ended without its last line")
	if strings.Contains(e.Stderr, "root/sudo privileges") {
		out.Error = errorkind.Denied
		out.Hint = "if this machine is there for that: uwf config set agents.<alias>.env.IS_SANDBOX 1; else uwf config set agents.<alias>.permission edits"
	}
	if d.retry != nil {
		out = d.retry.gaveUp(e)
	}
	d.limit(&out)
	out.Session = d.canGoOn(out)
	return out
}

// gaveUp is the outcome of a run that ended while it repeated a request.
func (l *line) gaveUp(e cliagent.Exit) cliagent.Outcome {
	if l.Status == 0 {
		return cliagent.Fail(errorkind.Server, cmp.Or(l.Error, "no answer")+": the model's endpoint could not be reached, again and again", e)
	}
	return cliagent.Fail(errorkind.OfStatus(l.Status), fmt.Sprintf("the model's endpoint answered with status %d, again and again", l.Status), e)
}

// canGoOn is the session, unless no model has spoken in it: the id that a failed
// start prints is not of a session.
func (d *decoder) canGoOn(out cliagent.Outcome) string {
	if d.spoke || out.Kind == cliagent.OK {
		return d.session
	}
	return ""
}

// usage is of this run alone.
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

// modelUsage is of one model.
type modelUsage struct {
	Input      usageparse.Tokens  `json:"inputTokens"`
	CacheWrite usageparse.Tokens  `json:"cacheCreationInputTokens"`
	CacheRead  usageparse.Tokens  `json:"cacheReadInputTokens"`
	Output     usageparse.Tokens  `json:"outputTokens"`
	Thinking   usageparse.Tokens  `json:"thinkingTokens"`
	Cost       usageparse.Dollars `json:"costUSD"`
}

// spend adds what a result line reports of the cost. There is one line for each time that
// claude has finished, and a background task can make it continue. Newer versions report what
// each line adds, side calls included: their modelUsage and total_cost_usd count the whole session,
// so a resumed call that is refused reports an empty addition beside the session's totals. Of older
// versions the newest line counts, with its usage by model where that is more: "usage" lacks what was
// asked again without streaming, and what was spent when a limit of cost ended the run.
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
			if all := sum(l.ByModel); tokens(all) > tokens(u) {
				u = all
			}
			u.CostUSD = l.Cost.USD()
		}
		d.spent.Usage = &u
	}
}

func tokens(u protocol.Usage) int64 {
	return u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens + u.OutputTokens
}

// sum is what was spent on all models. If what one has cost is unknown, all is.
func sum(models map[string]modelUsage) (u protocol.Usage) {
	cost, priced := 0.0, len(models) > 0
	for _, name := range slices.Sorted(maps.Keys(models)) { // in one order: sums of fractions differ
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
