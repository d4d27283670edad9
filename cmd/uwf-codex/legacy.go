package main

import (
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// message is an event of the format before 0.50, which has no session ids and no
// end: a version that writes it is refused where the version is known, and read
// as far as it goes where it is not.
type message struct {
	Type      string   `json:"type"`
	Message   string   `json:"message"`
	Text      string   `json:"text"`
	SessionID string   `json:"session_id"`
	CallID    string   `json:"call_id"`
	Command   []string `json:"command"`
	Output    string   `json:"aggregated_output"`
	ExitCode  int      `json:"exit_code"`
	Info      *struct {
		Total *tokens `json:"total_token_usage"`
	} `json:"info"`
}

// old reads a line without a type: an event of the older format, or one of the
// two lines that it begins with.
func (d *decoder) old(l line, data []byte) ([]cliagent.Event, bool) {
	if l.Msg == nil {
		var head struct {
			Workdir *string `json:"workdir"`
			Prompt  *string `json:"prompt"`
		}
		known := json.Unmarshal(data, &head) == nil && (head.Workdir != nil || head.Prompt != nil)
		return nil, known
	}
	d.legacy = true
	m := *l.Msg
	switch m.Type {
	case "session_configured":
		d.session = m.SessionID
		return []cliagent.Event{{Kind: cliagent.Started, Session: m.SessionID}}, true
	case "agent_message":
		d.worked, d.answered = true, true
		return []cliagent.Event{{Kind: cliagent.Text, Text: m.Message}}, true
	case "agent_reasoning":
		return []cliagent.Event{{Kind: cliagent.Reasoning, Text: m.Text}}, true
	case "exec_command_begin":
		d.worked, d.answered = true, false
		args := map[string]any{"command": strings.Join(m.Command, " ")}
		return []cliagent.Event{{Kind: cliagent.Called, Call: protocol.ToolCall{ID: m.CallID, Name: "command_execution", Args: args}}}, true
	case "exec_command_end":
		text := item{Output: m.Output, Exit: &m.ExitCode}.commandResult()
		return []cliagent.Event{{Kind: cliagent.Returned, Call: protocol.ToolCall{ID: m.CallID}, Text: text, Failed: m.ExitCode != 0}}, true
	case "token_count":
		if m.Info != nil && m.Info.Total != nil {
			d.usage = m.Info.Total
		}
	case "stream_error":
		return []cliagent.Event{{Kind: cliagent.Retrying, Status: statusIn(m.Message), Text: m.Message}}, true
	case "error":
		d.last = m.Message
	}
	return nil, true
}
