package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// decoder decodes "cursor-agent -p --output-format stream-json". A failure often has no last line, only an
// exit status and stderr.
type decoder struct {
	session string
	worked  bool // the model has produced output
	replied bool // a line with text has arrived
	calls   cliagent.Calls
	failure string // error reported in a separate line
	result  *line  // the last line
}

// line holds the fields of all events.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	CallID    string `json:"model_call_id"`

	Message struct { // assistant, user
		Content cliagent.Content `json:"content"`
	} `json:"message"`
	Text string `json:"text"` // thinking

	ToolID   string                     `json:"call_id"` // tool_call; may contain a line break
	ToolCall map[string]json.RawMessage `json:"tool_call"`

	IsError bool            `json:"is_error"` // result
	Result  string          `json:"result"`
	Error   json.RawMessage `json:"error"`
	Usage   *usage          `json:"usage"`
}

// usage exists only in newer versions. Input excludes cached tokens.
type usage struct {
	Input      usageparse.Tokens `json:"inputTokens"`
	Output     usageparse.Tokens `json:"outputTokens"`
	CacheRead  usageparse.Tokens `json:"cacheReadTokens"`
	CacheWrite usageparse.Tokens `json:"cacheWriteTokens"`
}

func (d *decoder) Line(data []byte) ([]cliagent.Event, bool) {
	var l line
	if !cliagent.Object(data, &l) || l.Type == "" {
		return nil, false
	}
	d.session = cmp.Or(l.SessionID, d.session)
	if l.Type == "error" {
		d.failure = cliagent.TextOf(data)
	}
	return cliagent.InSession(l.SessionID, d.events(l)), true
}

func (d *decoder) events(l line) []cliagent.Event {
	switch l.Type {
	case "system":
		return []cliagent.Event{{Kind: cliagent.Started, Model: l.Model}}
	case "assistant":
		text := string(l.Message.Content)
		if text == "" {
			return nil
		}
		d.worked, d.replied = true, true
		return []cliagent.Event{{Kind: cliagent.Text, Text: text}}
	case "thinking":
		if l.Text == "" {
			return nil
		}
		return []cliagent.Event{{Kind: cliagent.Reasoning, Text: l.Text}}
	case "tool_call":
		return d.tool(l)
	case "result":
		d.result = &l
		return []cliagent.Event{{Kind: cliagent.Done}}
	}
	return nil
}

func (d *decoder) tool(l line) []cliagent.Event {
	d.worked = true
	t := toolOf(l.ToolCall)
	call := protocol.ToolCall{ID: l.ToolID, Name: t.name, Args: t.args}
	if l.Subtype == "completed" {
		return d.calls.Ended(call, t.result, t.failed)
	}
	return d.calls.Begun(call)
}

// End judges by the last line.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	o := cliagent.Outcome{Message: cmp.Or(d.failure, e.Output())}
	if d.worked {
		o.Session = d.session
	}
	r := d.result
	switch {
	case r == nil && o.Message != "":
		o.Kind, o.Error = cliagent.Failed, errorkind.OfText(o.Message)
		if o.Error == errorkind.Unknown && d.session != "" {
			o.Error = cliagent.Crashed
		}
	case r == nil && d.session != "":
		o.Kind, o.Error, o.Message = cliagent.Failed, cliagent.Crashed, "cursor-agent ended without its last line"
	case r == nil:
		o.Kind, o.Message = cliagent.Incomplete, "cursor-agent printed nothing"
	case r.IsError || r.Subtype != "" && r.Subtype != "success":
		o.Kind, o.Message = cliagent.Failed, cmp.Or(cliagent.TextOf(r.Error), r.Result, o.Message, r.Subtype, "unknown reason")
		o.Error = errorkind.OfText(o.Message)
	case !d.replied:
		o.Kind, o.Message, o.Final = cliagent.OK, "", r.Result
	default: // Result is all of the model's text, concatenated
		o.Kind, o.Message = cliagent.OK, ""
	}
	if r != nil {
		o.Usage = r.Usage.usage()
	}
	return o
}

func (u *usage) usage() cliagent.Usage {
	if u == nil {
		return cliagent.Usage{}
	}
	return cliagent.Usage{Usage: &protocol.Usage{
		InputTokens: int64(u.Input), OutputTokens: int64(u.Output), CacheReadTokens: int64(u.CacheRead), CacheWriteTokens: int64(u.CacheWrite),
	}}
}

// tool is a call and its result.
type tool struct {
	name   string
	args   any
	result string
	failed bool
}

// toolOf decodes a call: an object with one key such as "shellToolCall", or a function with its arguments as
// a string.
func toolOf(raw map[string]json.RawMessage) tool {
	type body struct {
		Name      string          `json:"name"`
		Arguments any             `json:"arguments"`
		Args      any             `json:"args"`
		Result    json.RawMessage `json:"result"`
	}
	t, result := tool{}, raw["result"]
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		var b body
		if key == "result" || t.name != "" || !cliagent.Object(raw[key], &b) {
			continue
		}
		t.name, t.args = cmp.Or(b.Name, strings.TrimSuffix(key, "ToolCall")), b.Args
		if b.Args == nil {
			t.args = cliagent.Arguments(b.Arguments)
		}
		if b.Result != nil {
			result = b.Result
		}
	}
	t.result, t.failed = outcome(result)
	return t
}

// outcome returns the text of a result {success|error|rejected: {…}}.
func outcome(raw json.RawMessage) (text string, failed bool) {
	var result map[string]json.RawMessage
	if json.Unmarshal(raw, &result) != nil {
		return cliagent.TextOf(raw), false // unknown format
	}
	for _, kind := range slices.Sorted(maps.Keys(result)) {
		body := result[kind]
		switch kind {
		case "success":
			return success(body), false
		case "rejected":
			var r struct {
				Reason string `json:"reason"`
			}
			cliagent.Object(body, &r)
			return strings.TrimSuffix("rejected: "+r.Reason, ": "), true
		default:
			return cmp.Or(failureOf(body), kind), true
		}
	}
	return "", false
}

// success returns the part of a result to show: the output of a command or what was read, and otherwise
// everything.
func success(body json.RawMessage) string {
	var r struct {
		Stdout  *string `json:"stdout"`
		Stderr  string  `json:"stderr"`
		Content *string `json:"content"`
	}
	switch cliagent.Object(body, &r); {
	case r.Stdout != nil:
		return *r.Stdout + r.Stderr
	case r.Content != nil:
		return *r.Content
	case string(body) == "{}":
		return ""
	}
	return cliagent.TextOf(body)
}

// failureOf returns a tool's error message, or "".
func failureOf(body json.RawMessage) string {
	var r struct {
		Message string `json:"errorMessage"`
	}
	if cliagent.Object(body, &r); r.Message != "" {
		return r.Message
	}
	return success(body)
}
