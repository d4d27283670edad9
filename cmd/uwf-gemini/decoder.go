package main

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// decoder decodes "gemini --output-format stream-json". The last line contains the result; a failed start has
// only an exit status.
type decoder struct {
	session string
	worked  bool  // the model has produced output
	answer  bool  // text has arrived, and no tool call since
	limited bool  // it reported its turn limit
	result  *line // the last line
	escaped bool  // the prompt was escaped
}

// line holds the fields of all events.
type line struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`

	Role    string           `json:"role"` // message
	Content cliagent.Content `json:"content"`
	Delta   bool             `json:"delta"`

	ToolName   string          `json:"tool_name"` // tool_use, tool_result
	ToolID     string          `json:"tool_id"`
	Parameters any             `json:"parameters"`
	Output     json.RawMessage `json:"output"`

	Status string          `json:"status"` // tool_result, result
	Error  json.RawMessage `json:"error"`
	Stats  *stats          `json:"stats"`
}

type failure struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// failureOf decodes an error: an object or a string.
func failureOf(raw json.RawMessage) (f failure) {
	cliagent.Object(raw, &f)
	if f.Message == "" {
		f.Message = cliagent.TextOf(raw)
	}
	return f
}

// stats is the usage of this run. InputTokens includes cached tokens, Input excludes them; older versions
// have no Input. Only TotalTokens includes reasoning.
type stats struct {
	TotalTokens  usageparse.Tokens  `json:"total_tokens"`
	InputTokens  usageparse.Tokens  `json:"input_tokens"`
	OutputTokens usageparse.Tokens  `json:"output_tokens"`
	Cached       usageparse.Tokens  `json:"cached"`
	Input        *usageparse.Tokens `json:"input"`
}

func (d *decoder) Line(data []byte) ([]cliagent.Event, bool) {
	var l line
	if !cliagent.Object(data, &l) || l.Type == "" {
		return nil, false
	}
	switch l.Type {
	case "init":
		d.session = l.SessionID
		events := []cliagent.Event{{Kind: cliagent.Started, Session: l.SessionID, Model: l.Model}}
		if d.escaped {
			events = append(events, cliagent.Event{Kind: cliagent.Notice, Text: escaped})
		}
		return events, true
	case "message":
		return d.message(l), true
	case "tool_use":
		d.worked, d.answer = true, false
		call := protocol.ToolCall{ID: l.ToolID, Name: l.ToolName, Args: cliagent.Arguments(l.Parameters)}
		return []cliagent.Event{{Kind: cliagent.Called, Call: call}}, true
	case "tool_result":
		d.answer = false
		return []cliagent.Event{{
			Kind: cliagent.Returned, Call: protocol.ToolCall{ID: l.ToolID}, Text: l.output(), Failed: l.Status == "error",
		}}, true
	case "error":
		text := cliagent.TextOf(data)
		d.limited = d.limited || regexp.MustCompile(`(?i)max(imum)? session turns`).MatchString(text)
		return []cliagent.Event{{Kind: cliagent.Notice, Text: text}}, true
	case "result":
		d.result = &l
		return []cliagent.Event{{Kind: cliagent.Done}}, true
	}
	return nil, true
}

// message handles the model's text; the prompt comes back with the role "user".
func (d *decoder) message(l line) []cliagent.Event {
	if l.Role != "assistant" || l.Content == "" {
		return nil
	}
	d.worked, d.answer = true, true
	kind := cliagent.Text
	if l.Delta {
		kind = cliagent.Delta
	}
	return []cliagent.Event{{Kind: kind, Text: string(l.Content)}}
}

// output returns a tool's result, or its error.
func (l line) output() string {
	return cmp.Or(cliagent.TextOf(l.Output), cliagent.TextOf(l.Error))
}

// End judges by the last line, or without one by the exit status, which is specific.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	o := cliagent.Outcome{}
	if d.worked {
		o.Session = d.session
	}
	if d.result == nil {
		return d.unfinished(o, e)
	}
	o.Usage = d.result.Stats.usage()
	f := failureOf(d.result.Error)
	switch failed := d.result.Status == "error" || f.Type+f.Message != ""; {
	case failed && f.Type == "FatalTurnLimitedError", !d.answer && d.limited:
		o.Kind, o.Message = cliagent.MaxTurns, cmp.Or(f.Message, "turn limit reached")
	case failed:
		o.Kind, o.Error, o.Message = cliagent.Failed, f.kind(e), cmp.Or(f.Message, f.Type, e.Output(), "the run failed")
	case d.answer:
		o.Kind = cliagent.OK
	default:
		o.Kind, o.Message = cliagent.Incomplete, "the run ended without a text after its last tool"
	}
	o.Hint = hint(o)
	return o
}

// hint returns advice for a login error that a key does not fix: with a custom endpoint, the CLI's
// authentication type must be set.
func hint(o cliagent.Outcome) string {
	if o.Error == errorkind.Auth && strings.Contains(o.Message, "Invalid auth method") {
		return `put {"security":{"auth":{"selectedType":"gemini-api-key"}}} into ~/.gemini/settings.json: a key in the environment is not enough where GOOGLE_GEMINI_BASE_URL is set`
	}
	return ""
}

// exits maps the CLI's exit statuses to error kinds.
var exits = map[int]errorkind.Kind{
	41: errorkind.Auth,
	42: errorkind.BadUsage, // an argument, or a missing session
	55: errorkind.UntrustedDir,
}

const exitTurns = 53

// unfinished returns the outcome of a run without a last line.
func (d *decoder) unfinished(o cliagent.Outcome, e cliagent.Exit) cliagent.Outcome {
	o.Kind, o.Error = cliagent.Failed, errorkind.OfText(e.Output())
	o.Message = cmp.Or(e.Output(), "gemini exited without its last line")
	own, isOwn := exits[e.Code]
	switch {
	case e.Stopped:
		o.Error = cliagent.Crashed
	case e.Code == exitTurns:
		o.Kind, o.Error = cliagent.MaxTurns, ""
	case isOwn && strings.Contains(e.Stderr, "resuming session"):
		o.Error = errorkind.SessionNotFound
	case isOwn && o.Error != errorkind.SessionInUse:
		o.Error = own
	case d.session != "" && o.Error == errorkind.Unknown:
		o.Error = cliagent.Crashed
	}
	o.Hint = hint(o)
	return o
}

func (s *stats) usage() cliagent.Usage {
	if s == nil {
		return cliagent.Usage{}
	}
	thoughts := max(s.TotalTokens-s.InputTokens-s.OutputTokens, 0)
	u := &protocol.Usage{
		InputTokens: int64(max(s.InputTokens-s.Cached, 0)), CacheReadTokens: int64(s.Cached),
		OutputTokens: int64(s.OutputTokens + thoughts), ReasoningTokens: int64(thoughts),
	}
	if s.Input != nil {
		u.InputTokens = int64(*s.Input)
	}
	return cliagent.Usage{Usage: u}
}

// statuses are the HTTP statuses that can be recognized from an exit status, which is their low byte.
var statuses = []int{400, 401, 402, 403, 404, 408, 422, 429, 500, 502, 503, 504, 529}

// kind classifies a fatal error by its type, or by the HTTP status.
func (f failure) kind(e cliagent.Exit) errorkind.Kind {
	switch f.Type {
	case "FatalAuthenticationError":
		return errorkind.Auth
	case "FatalUntrustedWorkspaceError":
		return errorkind.UntrustedDir
	}
	for _, status := range statuses {
		if !e.Stopped && e.Code == status&0xff {
			return errorkind.Of(status, f.Message)
		}
	}
	return errorkind.OfText(f.Type + " " + f.Message)
}
