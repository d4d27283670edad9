package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// decoder is a [cliagent.Decoder] for "opencode run --format json". No line marks the start or the end: every line
// has the session ID, and the run was complete if the model's last step ended with the reason "stop".
type decoder struct {
	session  string
	reason   string // why the last step ended
	answer   bool   // text has arrived, and no tool call since
	calls    cliagent.Calls
	failure  json.RawMessage // nil if none, or if the model continued after it
	usage    *protocol.Usage
	lastPart string   // ID of the latest text or end of a step
	sub      *decoder // decoder for the lines of subagents, or nil
}

// line is an event.
type line struct {
	Type      string          `json:"type"`
	SessionID string          `json:"sessionID"`
	Part      part            `json:"part"`
	Error     json.RawMessage `json:"error"`
}

// part is a piece of a message, with the fields of all types.
type part struct {
	ID        string             `json:"id"`
	MessageID string             `json:"messageID"`
	Text      string             `json:"text"`
	Tool      string             `json:"tool"`
	CallID    string             `json:"callID"`
	State     state              `json:"state"`
	Reason    string             `json:"reason"`
	Tokens    tokens             `json:"tokens"`
	Cost      usageparse.Dollars `json:"cost"`
}

// state is the result of a tool call.
type state struct {
	Status string          `json:"status"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
	Error  json.RawMessage `json:"error"`
	// Metadata is specific to the tool. A failed command is "completed" as well.
	Metadata struct {
		Exit *int `json:"exit"`
	} `json:"metadata"`
}

func (s state) result() string {
	text := cliagent.TextOf(s.Output)
	if code := s.Metadata.Exit; code != nil && *code != 0 {
		text = strings.TrimSuffix(text, "\n") + fmt.Sprintf("\n[exit status %d]", *code)
	}
	return text
}

// tokens is the usage of one step. Input excludes cached tokens. Output excludes reasoning, except in older
// versions; the total shows which.
type tokens struct {
	Total     usageparse.Tokens `json:"total"`
	Input     usageparse.Tokens `json:"input"`
	Output    usageparse.Tokens `json:"output"`
	Reasoning usageparse.Tokens `json:"reasoning"`
	Cache     struct {
		Read  usageparse.Tokens `json:"read"`
		Write usageparse.Tokens `json:"write"`
	} `json:"cache"`
}

// failure is the error that ended the session.
type failure struct {
	Name string `json:"name"`
	Data struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"responseHeaders"`
	} `json:"data"`
}

func (d *decoder) Line(data []byte) ([]cliagent.Event, bool) {
	var l line
	if !cliagent.Object(data, &l) || l.Type == "" {
		return nil, false
	}
	d.session = cmp.Or(d.session, l.SessionID)
	if l.SessionID != "" && l.SessionID != d.session {
		return d.ofSub(l), true
	}
	events := d.events(l)
	if len(events) == 0 && l.SessionID != "" {
		events = []cliagent.Event{{Kind: cliagent.Started}}
	}
	return cliagent.InSession(l.SessionID, events), true
}

// ofSub returns the events of a subagent's line, which has another session ID. They add to the usage but don't
// affect the outcome.
func (d *decoder) ofSub(l line) []cliagent.Event {
	if d.sub == nil {
		d.sub = &decoder{}
	}
	d.sub.usage = d.usage
	events := slices.DeleteFunc(d.sub.events(l), func(e cliagent.Event) bool { return e.Kind == cliagent.Done })
	for i := range events {
		events[i].Sub = true
	}
	d.usage = d.sub.usage
	return events
}

// events returns the events of a line of this decoder's session, and records what [decoder.End] needs.
func (d *decoder) events(l line) []cliagent.Event {
	p := l.Part
	if l.Type == "text" || l.Type == "step_finish" {
		if p.ID != "" && p.ID == d.lastPart {
			return nil // reported twice, counted once
		}
		d.lastPart = p.ID
	}
	switch l.Type {
	case "step_start": // the model continues, even after what looked like the last step or a failure
		d.reason, d.failure = "", nil
		return []cliagent.Event{{Kind: cliagent.Reasoning, ID: p.MessageID}}
	case "text":
		if p.Text == "" {
			return nil
		}
		d.answer = true
		return []cliagent.Event{{Kind: cliagent.Text, ID: p.MessageID, Text: p.Text}}
	case "reasoning":
		return []cliagent.Event{{Kind: cliagent.Reasoning, ID: p.MessageID, Text: p.Text}}
	case "tool_use":
		return d.tool(p)
	case "step_finish":
		return d.finish(p)
	case "error":
		d.failure = l.Error
		if len(l.Error) == 0 { // nil would mean that nothing failed
			d.failure = json.RawMessage("null")
		}
	}
	return nil
}

// tool returns the events of a call and its result, which arrive as one line when the tool is done.
func (d *decoder) tool(p part) []cliagent.Event {
	d.answer = false
	call := protocol.ToolCall{ID: p.CallID, Name: p.Tool, Args: cliagent.Arguments(p.State.Input)}
	var events []cliagent.Event
	switch p.State.Status {
	case "pending", "running":
		events = d.calls.Begun(call)
	case "error":
		events = d.calls.Ended(call, cliagent.TextOf(p.State.Error), true)
	default:
		events = d.calls.Ended(call, p.State.result(), false)
	}
	for i := range events {
		events[i].ID = p.MessageID
	}
	return events
}

// finish handles the end of a step. The program may make another one, even after "stop", when it has
// compacted its context.
func (d *decoder) finish(p part) []cliagent.Event {
	d.reason = p.Reason
	step := protocol.Usage{
		InputTokens:      int64(p.Tokens.Input),
		CacheReadTokens:  int64(p.Tokens.Cache.Read),
		CacheWriteTokens: int64(p.Tokens.Cache.Write),
		OutputTokens:     int64(p.Tokens.Output),
		ReasoningTokens:  int64(p.Tokens.Reasoning),
		CostUSD:          p.Cost.USD(),
	}
	if int64(p.Tokens.Total) >= step.Tokens()+step.ReasoningTokens { // Output excludes it
		step.OutputTokens += step.ReasoningTokens
	}
	if d.usage != nil {
		step = d.usage.Add(step)
	}
	d.usage = &step
	if p.Reason == "stop" {
		return []cliagent.Event{{Kind: cliagent.Done}}
	}
	return nil
}

// End judges by the last step. opencode exits with status 0 even if it gave up because a permission could not
// be granted.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	o := cliagent.Outcome{Usage: cliagent.Usage{Usage: d.usage}}
	if d.usage != nil {
		o.Session = d.session
	}
	switch {
	case d.failure != nil:
		var f failure
		cliagent.Object(d.failure, &f)
		text := cliagent.TextOf(d.failure)
		for _, name := range []string{"retry-after-ms", "retry-after"} {
			if value := f.Data.Headers[name]; value != "" {
				text += "\n" + name + ": " + value
				break
			}
		}
		o.Kind, o.Error, o.Message = cliagent.Failed, f.kind(text), cmp.Or(text, e.Output(), "unknown reason")
	case d.reason == "stop" && d.answer:
		o.Kind = cliagent.OK
	case d.reason == "content-filter":
		o.Kind, o.Message = cliagent.Refusal, "the model's provider filtered the answer"
	case d.reason != "":
		o.Kind, o.Truncated = cliagent.Incomplete, d.reason == "length"
		o.Message = cmp.Or(e.Stderr, "the last step ended ("+d.reason+") without an answer")
	case e.Output() != "":
		o.Kind, o.Error, o.Message = cliagent.Failed, errorkind.OfText(e.Output()), e.Output()
	case d.session != "":
		o.Kind, o.Error, o.Message = cliagent.Failed, cliagent.Crashed, "opencode ended in the middle of a step"
	default:
		o.Kind, o.Message = cliagent.Incomplete, "opencode printed nothing"
	}
	return o
}

func (f failure) kind(text string) errorkind.Kind {
	switch {
	case f.Data.StatusCode != 0:
	case f.Name == "ProviderAuthError":
		return errorkind.Auth
	case f.Name == "ContextOverflowError":
		return errorkind.Context
	}
	return errorkind.Of(f.Data.StatusCode, text)
}
