package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// outcome returns the outcome of a prompt that was answered.
func (c *client) outcome(r prompted, p *prompt, resumed bool) cliagent.Outcome {
	o := cliagent.Outcome{Session: p.session, Usage: c.spent(r, p.emitter)}
	switch failure := p.emitter.failure(); {
	case r.StopReason == "cancelled":
		o.Kind, o.Message = cliagent.Interrupted, "the agent cancelled the prompt"
	case r.StopReason == "max_turn_requests":
		o.Kind, o.Message = cliagent.MaxTurns, "the agent reached its own turn limit"
	case r.StopReason == "refusal" && resumed && !p.producedOutput():
		o.Kind, o.Session = cliagent.SessionLost, ""
		o.Message = "the agent refused a prompt: it no longer has session " + p.session
	case r.StopReason == "refusal":
		o.Kind, o.Message = cliagent.Refusal, "the model declined to answer"
	case failure != "":
		o.Kind, o.Error, o.Message = cliagent.Failed, errorkind.OfText(failure), failure
	case !p.producedOutput() && len(p.strays) > 0:
		o.Kind, o.Session = cliagent.SessionLost, ""
		o.Message = "the session came back as " + strings.Join(p.strays, ", ")
	case r.StopReason != "end_turn":
		o.Kind, o.Truncated = cliagent.Incomplete, r.StopReason == "max_tokens"
		o.Message = "the agent stopped early: " + cmp.Or(r.StopReason, "unknown reason")
	case !p.emitter.answered():
		o.Kind, o.Message = cliagent.Incomplete, "the agent ended its turn without an answer"
	default:
		o.Kind = cliagent.OK
	}
	o.Refused = p.refuses
	if o.Kind == cliagent.Incomplete && len(p.refuses) > 0 {
		o.Message += "; it was not allowed to: " + strings.Join(p.refuses, "; ")
	}
	return o
}

// producedOutput reports whether the prompt produced text or tool calls.
func (p *prompt) producedOutput() bool { return p.emitter.answered() || p.emitter.tools > 0 }

// failure maps a protocol or connection error to an outcome. The runner reports whether and how the call was
// stopped.
func (c *client) failure(ctx context.Context, err error) cliagent.Outcome {
	o := cliagent.Outcome{Kind: cliagent.Failed, Error: errorkind.Unknown, Message: err.Error()}
	if ctx.Err() != nil {
		o.Kind, o.Error = cliagent.Interrupted, ""
		return o
	}
	var rpc *RPCError
	switch {
	case errors.Is(err, errCannotContinue):
		o.Kind, o.Error = cliagent.SessionLost, ""
	case errors.As(err, &rpc):
		o.Error = errorKind(rpc)
	case errors.As(err, new(*choiceError)):
		o.Error = errorkind.BadUsage
	}
	if o.Error == errorkind.Auth {
		o.Message = c.loginAdvice(o.Message)
	}
	return o
}

// crashed returns the outcome of a call during which the agent exited.
func (c *client) crashed(e cliagent.Exit, during error) cliagent.Outcome {
	how := fmt.Sprintf("exit status %d", e.Code)
	switch {
	case e.Stopped:
		how = "it had closed its output"
	case e.Signal != "":
		how = "signal " + e.Signal
	}
	e.Noise = c.odd.Text()
	message := fmt.Sprintf("%v (%s)", during, how)
	said := e.Output()
	if said != "" {
		message += "\n" + said
	}
	o := cliagent.Fail(cliagent.Crashed, message, e)
	if kind := errorkind.OfText(said); kind == errorkind.Auth || kind == errorkind.BadUsage || kind == errorkind.UntrustedDir {
		o.Error = kind
	}
	return o
}

// errorKind classifies an error response from the agent.
func errorKind(e *RPCError) errorkind.Kind {
	switch {
	case e.Code == codeAuthRequired:
		return errorkind.Auth
	case e.Code >= 400 && e.Code < 600: // Gemini CLI passes HTTP statuses on
		return errorkind.Of(e.Code, e.Error())
	case e.Code == codeNotFound:
		return errorkind.SessionNotFound
	}
	if kind := errorkind.OfText(e.Error()); kind != errorkind.Unknown {
		return kind
	}
	if e.Code == codeMethodNotFound || e.Code == codeInvalidParams {
		return errorkind.BadUsage
	}
	return errorkind.Unknown
}

// loginAdvice returns instructions for logging in.
func (c *client) loginAdvice(message string) string {
	if len(c.agent.AuthMethods) == 0 {
		return message + ". Log in to " + c.name() + " first, as its documentation says, or set its API key in the environment"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Log in to %s first; it offers:", message, c.name())
	for _, m := range c.agent.AuthMethods {
		fmt.Fprintf(&b, "\n  %s: %s", m.ID, cmp.Or(m.Description, m.Name))
		if m.Type == "terminal" && len(m.Args) > 0 {
			fmt.Fprintf(&b, " (start it in a terminal, with %s)", strings.Join(m.Args, " "))
		}
	}
	b.WriteString("\nTo use a method without a person, such as an API key in the environment: uwf-acp --auth ID " +
		"-- …")
	return b.String()
}

// spent returns the usage of a prompt, if the agent reports it.
//
// By the protocol, the figures in an answer are totals for the session since the agent started or loaded it.
// Some known agents count each prompt separately; for any other agent, a total that decreases is taken as the
// usage of one prompt.
func (c *client) spent(r prompted, t *emitter) cliagent.Usage {
	u := usage(r, t)
	if u.Usage == nil || !r.Usage.known() || countsPrompts(c.agent.Info.Name) {
		return u
	}
	run, counted := cliagent.Usage{Usage: u.Usage, TokensOfSession: true}.Since(c.counted)
	c.counted, u.Usage = counted, &run
	return u
}

// countsPrompts reports whether the named agent is known to count each prompt separately.
func countsPrompts(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"claude", "codex", "opencode", "gemini", "hermes"}, func(known string) bool {
		return strings.Contains(name, known)
	})
}

func usage(r prompted, t *emitter) cliagent.Usage {
	u := protocol.Usage{}
	known := r.Usage.add(&u)
	if !known {
		known = r.Meta.Quota.Tokens.add(&u)
	}
	if !known {
		u, known = t.used, t.uses
	}
	if t.costs {
		u.CostUSD = &t.cost
		known = true
	}
	if !known {
		return cliagent.Usage{}
	}
	return cliagent.Usage{Usage: &u, CostOfSession: t.costs}
}

// known reports whether any figure is set.
func (n tokenCount) known() bool { return n.add(&protocol.Usage{}) }

// add adds the figures to u and reports whether any was set.
func (n tokenCount) add(u *protocol.Usage) bool {
	value := func(list ...*int64) int64 {
		for _, p := range list {
			if p != nil && *p > 0 {
				return *p
			}
		}
		return 0
	}
	u.InputTokens, u.OutputTokens = value(n.Input, n.InputSnake), value(n.Output, n.OutputSnake)
	u.CacheReadTokens, u.CacheWriteTokens = value(n.CacheRead, n.Cached), value(n.CacheWrite)
	u.ReasoningTokens = value(n.Thought)
	cached := u.CacheReadTokens + u.CacheWriteTokens
	// Some agents count cached tokens as input and thoughts as output, others count them separately; the
	// total distinguishes the two.
	total, least := value(n.Total), u.InputTokens+u.OutputTokens
	apart := u.ReasoningTokens > 0 && (total == least+u.ReasoningTokens || total == least+cached+u.ReasoningTokens)
	if apart {
		u.OutputTokens += u.ReasoningTokens
		total -= u.ReasoningTokens
	}
	if cached > 0 && u.InputTokens >= cached && total > 0 && total < least+cached {
		u.InputTokens -= cached
	}
	return u.InputTokens+u.OutputTokens+cached > 0
}

// call holds the known state of a tool call.
type call struct {
	id      string
	message string // ID of the message that contains the call
	title   string // first title: often the tool's name, replaced later by a description
	latest  string // latest title
	name    string
	kind    string
	paths   []string
	sub     bool

	input    json.RawMessage
	output   json.RawMessage
	content  json.RawMessage
	terminal strings.Builder // output from an extension of Codex and Claude
}

// maxResult bounds the text of a result. Agents pass less to their models.
const maxResult = 1 << 20

// change merges an update; fields missing from it keep their values.
func (c *call) change(u update) {
	c.latest = cmp.Or(u.Title, c.latest)
	c.name = cmp.Or(u.Name, u.Meta.Claude.Tool, c.name)
	c.kind = cmp.Or(u.ToolKind, c.kind)
	if !isNull(u.RawInput) {
		c.input = u.RawInput
	}
	if !isNull(u.RawOutput) {
		c.output = u.RawOutput
	}
	if !isNull(u.Content) {
		c.content = u.Content
	}
	for _, l := range u.Locations {
		c.touches(l.Path)
	}
	for _, b := range blocks(u.Content) {
		c.touches(b.Path)
	}
	if o := u.Meta.Output; o != nil {
		c.terminal.Reset()
		c.prints(o.Data)
	}
	if o := u.Meta.OutputDelta; o != nil {
		c.prints(o.Data)
	}
}

// touches adds a path that the call affects.
func (c *call) touches(path string) {
	const maxPaths = 1000
	if path != "" && len(c.paths) < maxPaths {
		c.paths = append(c.paths, path)
	}
}

func (c *call) prints(text string) {
	c.terminal.WriteString(text[:min(len(text), max(0, maxResult-c.terminal.Len()))])
}

// word matches a title that is a tool name.
var word = lazyregexp.New(`^[A-Za-z_][\w.-]*$`)

// called returns the best known name of the tool.
func (c *call) called() string {
	if c.name != "" {
		return c.name
	}
	if word().MatchString(c.title) {
		return c.title
	}
	// Gemini CLI's IDs begin with the name, twice.
	if name, rest, ok := strings.Cut(c.id, "__"); ok && name != "" && strings.HasPrefix(rest, name+"_") {
		return name
	}
	return cmp.Or(c.kind, "tool")
}

// args returns the call's arguments, or its title if the agent does not report them.
func (c *call) args() any {
	if !isNull(c.input) {
		return cliagent.Arguments(c.input)
	}
	return map[string]any{"title": cmp.Or(c.latest, c.title)}
}

// result returns the tool's result as text.
func (c *call) result() string {
	text := readOutput(c.output)
	if text == "" {
		text = readContent(c.content)
	}
	if text == "" {
		text = c.terminal.String()
	}
	if len(text) > maxResult {
		text = text[:maxResult] + fmt.Sprintf("\n[%d bytes more]", len(text)-maxResult)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// readOutput returns a raw output as text. It accepts a string, an object that contains one, or other JSON.
func readOutput(raw json.RawMessage) string {
	if isNull(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil {
		for _, name := range []string{"output", "error", "formatted_output", "stdout", "text"} {
			if json.Unmarshal(fields[name], &text) == nil && text != "" {
				return text
			}
		}
		if len(fields) == 0 {
			return ""
		}
	}
	return string(raw)
}

// readContent returns the content of a tool call, a list of blocks, as text.
func readContent(raw json.RawMessage) string {
	var texts []string
	for _, b := range blocks(raw) {
		switch b.Type {
		case "content":
			texts = append(texts, readBlock(b.Content))
		case "diff":
			texts = append(texts, "[changed "+b.Path+"]")
		default:
			texts = append(texts, b.read())
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// blocks decodes a list of blocks. It returns nil for anything else.
func blocks(raw json.RawMessage) []block {
	var list []block
	if isNull(raw) || raw[0] != '[' || lenient(raw, &list) != nil {
		return nil
	}
	return list
}

// readBlock returns a content block as text.
func readBlock(raw json.RawMessage) string {
	var b block
	if isNull(raw) || lenient(raw, &b) != nil {
		return ""
	}
	return b.read()
}

func (b *block) read() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource":
		return cmp.Or(b.Resource.Text, "["+b.Resource.URI+"]")
	case "resource_link":
		return "[" + b.URI + "]"
	case "image", "audio":
		return "[" + strings.TrimSpace(b.Type+" "+b.MimeType) + "]"
	}
	return ""
}

// about describes the call in a few words.
func (c *call) about() string {
	what := cmp.Or(c.latest, c.title)
	if what == "" || what == c.called() {
		return c.called()
	}
	return c.called() + ": " + what
}

// emitter turns the updates of one prompt into events.
//
// It resolves what the protocol leaves open: where one message ends and the next begins, when the arguments
// of a tool call are complete, and which texts don't come from the model.
type emitter struct {
	emit func(cliagent.Event)

	message string // message ID of the latest text
	named   bool   // the agent's messages have IDs
	parted  bool   // the next text begins a new message

	calls   map[string]*call
	ended   map[string]bool // IDs of calls whose result was emitted
	pending []*call         // calls not emitted yet, in order

	tools  int    // number of calls emitted
	latest string // start of the text since the last tool event
	broken bool   // the agent marked the following text as an error

	used  protocol.Usage // sum of the per-request usage, if the agent reports it
	uses  bool           // used is set
	cost  float64        // cost of the session so far
	costs bool           // cost is set
	model string
}

// Bounds on the state kept for a prompt.
const (
	maxCalls = 1000    // concurrent calls
	maxText  = 4 << 10 // enough to distinguish an error from an answer
)

func newEmitter(emit func(cliagent.Event)) *emitter {
	return &emitter{emit: emit, calls: map[string]*call{}, ended: map[string]bool{}}
}

// update handles one update of the session.
func (t *emitter) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		t.text(u)
		t.question(u.Meta.Usage)
	case "agent_thought_chunk":
		if text := readBlock(u.Content); text != "" {
			t.emit(cliagent.Event{Kind: cliagent.Reasoning, ID: u.MessageID, Text: text, Sub: u.sub()})
		}
		t.parted = true
	case "tool_call", "tool_call_update":
		t.tool(u)
	case "user_message_chunk":
		// Earlier text belongs to an earlier prompt: it is a late replay.
		t.parted, t.latest = true, ""
	case "plan", "available_commands_update":
		t.parted = true
	case "usage_update":
		t.usage(u)
	case "session_info_update":
		t.broken = t.broken || u.Meta.Codex.Status.Type == "systemError"
	case "notice":
		t.emit(cliagent.Event{Kind: cliagent.Notice, Text: strings.TrimSpace(u.Severity + ": " + u.Title)})
	}
}

func (u *update) sub() bool { return u.Meta.Claude.Parent != "" }

// text handles a piece of a message.
func (t *emitter) text(u update) {
	text := readBlock(u.Content)
	if text == "" {
		return
	}
	t.emitCalls()
	switch {
	case u.sub():
		t.emit(cliagent.Event{Kind: cliagent.Delta, ID: u.MessageID, Text: text, Sub: true})
	case u.MessageID == "" && (t.named || t.latest == "" && isWarning(text)):
		// Agents that assign message IDs insert their own warnings without one.
		t.emit(cliagent.Event{Kind: cliagent.Notice, Text: strings.TrimSpace(text)})
	default:
		t.emitText(u.MessageID, text)
	}
}

// isWarning recognizes a warning of codex-acp, which comes in one piece.
func isWarning(text string) bool {
	return strings.HasPrefix(text, "Warning:") && strings.HasSuffix(text, "\n\n")
}

// emitText emits a piece of the model's text.
func (t *emitter) emitText(id, text string) {
	parted := id == "" && (t.parted || t.begins(text))
	if parted {
		t.emit(cliagent.Event{Kind: cliagent.Break})
	}
	if parted || id != t.message {
		t.latest = ""
	}
	t.parted, t.message, t.named = false, id, t.named || id != ""
	if len(t.latest) < maxText {
		t.latest += text[:min(len(text), maxText)]
	}
	t.emit(cliagent.Event{Kind: cliagent.Delta, ID: id, Text: text})
}

// begins reports whether a piece begins a new message without a marker. Some agents without message IDs send
// warnings and interim text right before an answer. An answer begins with "---"; inside an answer such a line
// is a horizontal rule.
func (t *emitter) begins(text string) bool {
	rest, ok := strings.CutPrefix(text, "---")
	opens := ok && (rest == "" || strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n"))
	return opens && t.latest != "" && !strings.HasPrefix(strings.TrimSpace(t.latest), "---")
}

func (t *emitter) usage(u update) {
	if u.Cost != nil && (u.Cost.Currency == "" || u.Cost.Currency == "USD") && u.Cost.Amount.USD() != nil {
		t.cost, t.costs = *u.Cost.Amount.USD(), true
	}
	if u.Meta.ClaudeModel != "" {
		t.model = u.Meta.ClaudeModel
	}
}

// question adds the usage of one request.
func (t *emitter) question(n tokenCount) {
	var u protocol.Usage
	if n.add(&u) {
		t.used, t.uses = t.used.Add(u), true
	}
}

// tool handles a new or changed tool call.
func (t *emitter) tool(u update) {
	c := t.calls[u.ID]
	if c == nil {
		if u.Kind == "tool_call_update" && u.Title == "" && u.Name == "" && (t.ended[u.ID] || !u.hasContent()) {
			return // the call has ended, or is not emitted yet
		}
		c = t.newCall(u)
	}
	c.change(u)
	switch u.Status {
	case "in_progress":
		if !isNull(c.input) {
			t.emitCalls()
		}
	case "completed", "failed":
		t.emitCalls()
		delete(t.calls, u.ID)
		if len(t.ended) >= maxCalls {
			clear(t.ended)
		}
		t.ended[u.ID] = true
		t.emit(cliagent.Event{
			Kind: cliagent.Returned, Call: protocol.ToolCall{ID: u.ID, Name: c.called()},
			Text: c.result(), Failed: u.Status == "failed", Sub: c.sub,
		})
		t.latest, t.message, t.parted = "", "", false
	}
}

// hasContent reports whether an update has a result to emit, even if its call is otherwise unknown: some agents
// report a denied tool this way.
func (u *update) hasContent() bool {
	return u.Status == "failed" || u.Status == "completed" && !(isNull(u.Content) && isNull(u.RawOutput))
}

// newCall starts tracking a call.
func (t *emitter) newCall(u update) *call {
	if len(t.calls) >= maxCalls {
		t.emitCalls()
		clear(t.calls) // the agent never ends its calls; drop their results
	}
	c := &call{id: u.ID, title: u.Title, sub: u.sub(), message: t.message}
	t.calls[u.ID] = c
	t.pending = append(t.pending, c)
	t.tools++
	return c
}

// permissionAsked records the details that a permission request gives about a call.
func (t *emitter) permissionAsked(c toolCall, content json.RawMessage) *call {
	known := t.calls[c.ID]
	if known == nil {
		// Some agents ask before they announce a call, or use another ID. Any later text is a new message.
		known = &call{id: c.ID, title: c.Title}
		t.parted, t.latest = true, ""
	}
	known.change(update{toolCall: c, Content: content})
	t.emitCalls()
	return known
}

// emitCalls emits the calls that were waiting for their arguments.
func (t *emitter) emitCalls() {
	for _, c := range t.pending {
		t.emit(cliagent.Event{
			Kind: cliagent.Called, ID: c.message, Sub: c.sub,
			Call: protocol.ToolCall{ID: c.id, Name: c.called(), Args: c.args()},
		})
		t.latest = ""
	}
	t.pending = nil
}

// errorText matches errors that agents send as messages.
var errorText = lazyregexp.New(`^(Error: |HTTP [45]\d\d\b|API Error\b)`)

// failure returns the message if the agent sent an error as its answer, or "".
func (t *emitter) failure() string {
	text := strings.TrimSpace(t.latest)
	switch {
	case t.broken:
		return cmp.Or(text, "the agent reported an unknown error")
	case t.tools == 0 && errorText().MatchString(text):
		return text
	}
	return ""
}

// answered reports whether text arrived after the last tool event.
func (t *emitter) answered() bool { return strings.TrimSpace(t.latest) != "" }
