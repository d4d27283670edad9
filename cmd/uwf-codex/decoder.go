package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// cumulative is the first version whose token figures are totals over all runs of a thread.
var cumulative = cliagent.V(0, 79, 0)

// decoder decodes "codex exec --json": one event per line, with start and end events for tools.
type decoder struct {
	call    cliagent.Call
	session string
	calls   cliagent.Calls

	worked    bool   // the model has produced output
	answered  bool   // a message has arrived, and no tool call since
	completed bool   // the turn completed
	failed    string // why the turn failed
	last      string // latest error line, unless the model continued; often just a retry
	usage     *tokens
}

// line holds the fields of all events.
type line struct {
	Type     string          `json:"type"`
	ThreadID string          `json:"thread_id"`
	Item     json.RawMessage `json:"item"`
	Usage    *tokens         `json:"usage"`
	Message  string          `json:"message"`
	Error    json.RawMessage `json:"error"`
}

// tokens is Codex's usage. Input includes cached tokens.
type tokens struct {
	Input      usageparse.Tokens `json:"input_tokens"`
	CacheRead  usageparse.Tokens `json:"cached_input_tokens"`
	CacheWrite usageparse.Tokens `json:"cache_write_input_tokens"`
	Output     usageparse.Tokens `json:"output_tokens"`
	Reasoning  usageparse.Tokens `json:"reasoning_output_tokens"`
}

func (d *decoder) Line(data []byte) ([]cliagent.Event, bool) {
	var l line
	if !cliagent.Object(data, &l) {
		return nil, false
	}
	switch l.Type {
	case "":
		return nil, false
	case "thread.started":
		d.session = l.ThreadID
		return []cliagent.Event{{Kind: cliagent.Started, Session: l.ThreadID}}, true
	case "turn.started": // the latest turn decides; its cost is reported at its end
		d.completed, d.failed, d.usage = false, "", nil
	case "item.started", "item.completed":
		return d.item(l.Item, l.Type == "item.completed"), true
	case "turn.completed":
		if d.completed = true; l.Usage != nil {
			d.usage = l.Usage
		}
		return []cliagent.Event{{Kind: cliagent.Done}}, true
	case "turn.failed":
		d.failed = cmp.Or(cliagent.TextOf(l.Error), d.last, "the turn failed")
		return []cliagent.Event{{Kind: cliagent.Done}}, true
	case "error":
		d.last = cliagent.TextOf(data)
		return []cliagent.Event{{Kind: cliagent.Retrying, Status: statusIn(d.last), Text: d.last}}, true
	}
	return nil, true
}

// End judges by the end of the turn. Without one, Codex was stopped or has crashed.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	o := cliagent.Outcome{Usage: d.spent()}
	if d.worked {
		o.Session = d.session
	}
	switch {
	case d.failed != "":
		o.Kind, o.Error, o.Message = cliagent.Failed, kindOf(d.failed), readable(d.failed)
	case d.completed && d.answered:
		o.Kind = cliagent.OK
	case d.completed:
		o.Kind, o.Message = cliagent.Incomplete, "the turn ended without a message after its last tool"
	case d.last != "":
		o.Kind, o.Error, o.Message = cliagent.Failed, kindOf(d.last), readable(d.last)
	case d.session == "":
		o.Kind, o.Error, o.Message = cliagent.Failed, kindOf(e.Output()), cmp.Or(e.Output(), "codex printed nothing")
	default:
		o.Kind, o.Error, o.Message = cliagent.Failed, cliagent.Crashed, "codex ended in the middle of its turn"
		if said := e.Output(); said != "" {
			o.Message += ": " + said
			if kind := kindOf(said); kind != errorkind.Unknown {
				o.Error = kind
			}
		}
	}
	return o
}

func (d *decoder) spent() cliagent.Usage {
	if d.usage == nil {
		return cliagent.Usage{}
	}
	t, v := *d.usage, d.call.Version
	return cliagent.Usage{
		TokensOfSession: !v.Known() || v.AtLeast(cumulative),
		Usage: &protocol.Usage{
			InputTokens:      int64(max(t.Input-t.CacheRead-t.CacheWrite, 0)),
			CacheReadTokens:  int64(t.CacheRead),
			CacheWriteTokens: int64(t.CacheWrite),
			OutputTokens:     int64(t.Output),
			ReasoningTokens:  int64(t.Reasoning),
		},
	}
}

// item is a message, a tool call, or another event.
type item struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Text   string `json:"text"`
	Status string `json:"status"`

	Command string `json:"command"` // command_execution
	Output  string `json:"aggregated_output"`
	Exit    *int   `json:"exit_code"`

	Changes json.RawMessage `json:"changes"` // file_change

	Server    string          `json:"server"` // mcp_tool_call
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`

	Query   string `json:"query"`   // web_search
	Message string `json:"message"` // error
}

func (d *decoder) item(raw json.RawMessage, ended bool) []cliagent.Event {
	var it item
	if !cliagent.Object(raw, &it) {
		return nil
	}
	switch it.Type {
	case "agent_message":
		if !ended || it.Text == "" {
			return nil
		}
		d.worked, d.answered, d.last = true, true, ""
		return []cliagent.Event{{Kind: cliagent.Text, Text: it.Text}}
	case "reasoning":
		if !ended {
			return nil
		}
		return []cliagent.Event{{Kind: cliagent.Reasoning, Text: it.Text}}
	case "error": // a warning; fatal errors arrive as turn.failed
		return []cliagent.Event{{Kind: cliagent.Notice, Text: it.Message}}
	case "command_execution":
		return d.tool(it, ended, "command_execution", map[string]any{"command": it.Command}, it.commandResult())
	case "file_change":
		return d.tool(it, ended, "file_change", cliagent.Arguments(it.Changes), it.Status)
	case "mcp_tool_call":
		return d.tool(it, ended, it.Server+"."+it.Tool, cliagent.Arguments(it.Arguments), it.mcpResult())
	case "web_search":
		return d.tool(it, ended, "web_search", map[string]any{"query": it.Query}, "")
	}
	if it.Status == "" {
		return nil // a plan, or an unknown item
	}
	return d.tool(it, ended, it.Type, cliagent.Arguments(raw), it.Status)
}

func (d *decoder) tool(it item, ended bool, name string, args any, result string) []cliagent.Event {
	d.worked, d.answered, d.last = true, false, ""
	call := protocol.ToolCall{ID: it.ID, Name: name, Args: args}
	if !ended {
		return d.calls.Begun(call)
	}
	failed := it.Status == "failed" || it.Status == "declined" || it.Exit != nil && *it.Exit != 0
	return d.calls.Ended(call, result, failed)
}

func (it item) commandResult() string {
	switch {
	case it.Exit != nil && *it.Exit != 0:
		return strings.TrimSuffix(it.Output, "\n") + fmt.Sprintf("\n[exit status %d]", *it.Exit)
	case it.Status == "declined":
		return it.Output + "[declined]"
	}
	return it.Output
}

// mcpResult returns the result of an MCP server's tool.
func (it item) mcpResult() string {
	if text := cliagent.TextOf(it.Error); text != "" {
		return text
	}
	var result struct {
		Content json.RawMessage `json:"content"`
	}
	if cliagent.Object(it.Result, &result) && len(result.Content) > 0 {
		return cliagent.TextOf(result.Content)
	}
	return cliagent.TextOf(it.Result)
}

// statusIn returns the HTTP status mentioned in a message, or 0.
func statusIn(message string) int {
	if m := regexp.MustCompile(`status:? (\d{3})\b`).FindStringSubmatch(message); m != nil {
		status, _ := strconv.Atoi(m[1]) // always three digits
		return status
	}
	return 0
}

func kindOf(message string) errorkind.Kind {
	switch status := statusIn(message); {
	case status != 0:
		return errorkind.Of(status, message)
	case strings.HasPrefix(message, "Missing environment variable"):
		return errorkind.Auth // used only for missing keys
	case strings.Contains(message, "exceeds the maximum length"):
		return errorkind.Context // prompt size in characters
	case strings.Contains(message, "experiencing high demand"):
		return errorkind.Server // Codex's wording for status 500
	}
	return errorkind.OfText(message)
}

// readable extracts the message if an endpoint's response is passed on verbatim.
func readable(message string) string {
	if !strings.HasPrefix(message, "{") || !json.Valid([]byte(message)) {
		return message
	}
	return cliagent.TextOf([]byte(message))
}
