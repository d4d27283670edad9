package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// decoder decodes Hermes's JSON lines. The session ID can appear on either stream.
type decoder struct {
	call    cliagent.Call
	session string // latest ID: it may change when Hermes compresses the session
	missing bool   // it reported an unknown session
	worked  bool   // the model has produced output
	failure string // error reported in a separate line
	result  *line  // the last line
}

// line holds the fields of all events.
type line struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	Text      string `json:"text"`

	Name     string          `json:"name"` // tool_use, tool_result
	CallID   string          `json:"tool_call_id"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	IsError  bool            `json:"is_error"`
	ExitCode int             `json:"exit_code"` // result
	Error    json.RawMessage `json:"error"`
	Tokens   *tokens         `json:"tokens"`
}

// tokens is the usage of the run. Input excludes cached tokens.
type tokens struct {
	Input      usageparse.Tokens `json:"input"`
	Output     usageparse.Tokens `json:"output"`
	CacheRead  usageparse.Tokens `json:"cache_read"`
	CacheWrite usageparse.Tokens `json:"cache_write"`
	Reasoning  usageparse.Tokens `json:"reasoning"`
}

func (d *decoder) Line(data []byte) ([]cliagent.Event, bool) {
	var l line
	if !cliagent.Object(data, &l) || l.Type == "" {
		d.ErrLine(data) // banners, and in some versions the ID
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
	case "text":
		d.worked = d.worked || l.Text != ""
		return []cliagent.Event{{Kind: cliagent.Delta, Text: l.Text}}
	case "reasoning", "thinking":
		return []cliagent.Event{{Kind: cliagent.Reasoning, Text: l.Text}}
	case "tool_use":
		d.worked = true
		return []cliagent.Event{{Kind: cliagent.Called, Call: protocol.ToolCall{ID: l.CallID, Name: l.Name, Args: cliagent.Arguments(l.Input)}}}
	case "tool_result":
		return []cliagent.Event{{
			Kind: cliagent.Returned, Call: protocol.ToolCall{ID: l.CallID}, Text: cliagent.TextOf(l.Output), Failed: l.IsError,
		}}
	case "result":
		d.result = &l
		return []cliagent.Event{{Kind: cliagent.Done}}
	}
	return nil
}

var (
	idLine  = lazyregexp.New(`^session_id:\s*(\S+)\s*$`)
	unknown = lazyregexp.New(`(?i)^\W*(error: )?session not found`)
	// failure matches an error that Hermes returns as its answer.
	failure = lazyregexp.New(`^\s*(Error: |HTTP [45]\d\d\b|API Error)`)
	// limited matches the error text that Hermes prints when it reaches its turn limit.
	limited = lazyregexp.New(`(?i)(iteration|turn) limit|max(imum)?(_| )?(number of )?(tool.calling )?(turns|iterations)`)
)

// ErrLine implements [cliagent.ErrLiner].
func (d *decoder) ErrLine(data []byte) []cliagent.Event {
	text := bytes.TrimSpace(data)
	if unknown().Match(text) {
		d.missing = true
	}
	m := idLine().FindSubmatch(text)
	if m == nil {
		return nil
	}
	d.session = string(m[1])
	return []cliagent.Event{{Kind: cliagent.Started, Session: d.session}}
}

// interrupted is the exit status after an interrupt.
const interrupted = 130

// End judges by the last line.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	var o cliagent.Outcome
	if d.result == nil {
		o = d.unfinished(e)
	} else {
		o = d.finished(e)
	}
	if d.worked {
		o.Session = d.session
	}
	return o
}

func (d *decoder) finished(e cliagent.Exit) cliagent.Outcome {
	r := d.result
	o := cliagent.Outcome{Usage: r.Tokens.usage()}
	why := cliagent.TextOf(r.Error)
	said := cmp.Or(why, r.Text, d.failure, e.Output(), "unknown reason")
	switch failed := r.ExitCode != 0 || why != ""; {
	case d.missing && d.call.Resume:
		o.Kind, o.Error, o.Message = cliagent.Failed, errorkind.SessionNotFound, "Hermes does not know session "+d.call.Session
	case r.ExitCode == interrupted:
		o.Kind, o.Message = cliagent.Interrupted, said
	case failed && why == "" && strings.HasPrefix(r.Text, "---"):
		o.Kind, o.Message, o.Final = cliagent.Incomplete, "Hermes reported a failure but answered", r.Text
	case failed && limited().MatchString(said):
		o.Kind, o.Message = cliagent.MaxTurns, said
	case failed:
		o.Kind, o.Error, o.Message = cliagent.Failed, kindOf(r.ExitCode, said), said
	case failure().MatchString(r.Text):
		o.Kind, o.Error, o.Message = cliagent.Failed, errorkind.OfText(r.Text), r.Text
	case r.Text == "" && !d.worked:
		o.Kind, o.Message = cliagent.Incomplete, "Hermes ended without an answer"
	default:
		o.Kind, o.Final, d.worked = cliagent.OK, r.Text, true
	}
	return o
}

// unfinished returns the outcome without a last line.
func (d *decoder) unfinished(e cliagent.Exit) cliagent.Outcome {
	said := cmp.Or(d.failure, e.Output())
	o := cliagent.Outcome{Kind: cliagent.Failed, Error: errorkind.OfText(said)}
	o.Message = cmp.Or(said, "hermes exited without its last line")
	switch {
	case d.missing && d.call.Resume:
		o.Error = errorkind.SessionNotFound
	case e.Code == 2 && !e.Stopped:
		o.Error = errorkind.BadUsage
	case d.session != "" && o.Error == errorkind.Unknown:
		o.Error = cliagent.Crashed
	}
	return o
}

func kindOf(code int, said string) errorkind.Kind {
	if code == 2 {
		return errorkind.BadUsage
	}
	return errorkind.OfText(said)
}

func (t *tokens) usage() cliagent.Usage {
	if t == nil {
		return cliagent.Usage{}
	}
	return cliagent.Usage{Usage: &protocol.Usage{
		InputTokens: int64(t.Input), OutputTokens: int64(t.Output), CacheReadTokens: int64(t.CacheRead), CacheWriteTokens: int64(t.CacheWrite),
		ReasoningTokens: int64(t.Reasoning),
	}}
}
