package acp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/utilagent/usageparse"
)

// The protocol's objects, limited to the fields in use. Agents deviate from the specification and from each
// other, so every field is optional, and a field of the wrong type counts as missing (see lenient).

// protocolVersion is the protocol version that uwf speaks.
const protocolVersion = 1

type initializeParams struct {
	ProtocolVersion int          `json:"protocolVersion"`
	Capabilities    capabilities `json:"clientCapabilities"`
	Info            info         `json:"clientInfo"`
}

type capabilities struct {
	FS       fsCapabilities `json:"fs"`
	Terminal bool           `json:"terminal"` // always false: agents run their commands themselves
}

type fsCapabilities struct {
	Read  bool `json:"readTextFile"`
	Write bool `json:"writeTextFile"`
}

type info struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type initializeResult struct {
	ProtocolVersion *int `json:"protocolVersion"`
	Capabilities    struct {
		LoadSession bool `json:"loadSession"`
		Session     struct {
			Resume json.RawMessage `json:"resume"`
			Fork   json.RawMessage `json:"fork"`
			Close  json.RawMessage `json:"close"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods []authMethod `json:"authMethods"`
	Info        info         `json:"agentInfo"`
}

// has reports whether a capability is present, as an object or true.
func has(capability json.RawMessage) bool {
	return !isNull(capability) && string(capability) != "false"
}

type authMethod struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Type        string   `json:"type"` // "terminal" needs a person to run it
	Args        []string `json:"args"`
}

type openParams struct {
	SessionID  string   `json:"sessionId,omitempty"`
	Cwd        string   `json:"cwd"`
	MCPServers []string `json:"mcpServers"` // never nil: some agents require a list
	Meta       openMeta `json:"_meta"`
}

// openMeta holds a setting for Claude Code's bridge that other agents ignore: it loads only the user's
// settings, because a directory's settings can define hooks and servers.
type openMeta struct {
	Claude struct {
		Options struct {
			SettingSources []string `json:"settingSources"`
		} `json:"options"`
	} `json:"claudeCode"`
}

func newOpenMeta() (m openMeta) {
	m.Claude.Options.SettingSources = []string{"user"}
	return m
}

// opened is the response to session/new, load, resume and fork.
type opened struct {
	SessionID string `json:"sessionId"`
	Modes     struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	Options []configOption `json:"configOptions"`
}

// configOption is a setting of a session.
type configOption struct {
	ID       string         `json:"id"`
	Category string         `json:"category"` // "mode", "model"
	Current  string         `json:"currentValue"`
	Options  []configChoice `json:"options"`
}

// configChoice is a value or a group of values.
type configChoice struct {
	Value   string         `json:"value"`
	Options []configChoice `json:"options"`
}

// choices returns the values of an option, including those in groups.
func choices(list []configChoice) (values []string) {
	for _, c := range list {
		if c.Value != "" {
			values = append(values, c.Value)
		}
		values = append(values, choices(c.Options)...)
	}
	return values
}

type promptParams struct {
	SessionID string        `json:"sessionId"`
	Prompt    []promptBlock `json:"prompt"`
}

type promptBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// prompted is the response to session/prompt.
type prompted struct {
	StopReason string     `json:"stopReason"`
	Usage      tokenCount `json:"usage"`
	Meta       struct {
		Quota struct {
			Tokens tokenCount `json:"token_count"`
			Models []struct {
				Model string `json:"model"`
			} `json:"model_usage"`
		} `json:"quota"`
	} `json:"_meta"`
}

// tokenCount is token usage under the field names of all known agents.
type tokenCount struct {
	Total       *int64 `json:"totalTokens"`
	Input       *int64 `json:"inputTokens"`
	InputSnake  *int64 `json:"input_tokens"` // Gemini CLI
	Output      *int64 `json:"outputTokens"`
	OutputSnake *int64 `json:"output_tokens"`
	CacheRead   *int64 `json:"cachedReadTokens"`
	Cached      *int64 `json:"cachedInputTokens"`
	CacheWrite  *int64 `json:"cachedWriteTokens"`
	Thought     *int64 `json:"thoughtTokens"`
}

// updateParams holds the parameters of session/update.
type updateParams struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

type update struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"` // a block, or a list for a tool call
	toolCall
	Cost *struct {
		Amount   usageparse.Dollars `json:"amount"`
		Currency string             `json:"currency"`
	} `json:"cost"`
	Severity string `json:"severity"`
	Meta     struct {
		ClaudeModel string     `json:"_claude/model"`
		Usage       tokenCount `json:"usage"` // Qwen Code: usage of one request
		Claude      struct {
			Tool   string `json:"toolName"`
			Parent string `json:"parentToolUseId"`
		} `json:"claudeCode"`
		Codex struct {
			Status struct {
				Type string `json:"type"`
			} `json:"threadStatus"`
		} `json:"codex"`
		Output      *terminalData `json:"terminal_output"`
		OutputDelta *terminalData `json:"terminal_output_delta"`
	} `json:"_meta"`
}

type terminalData struct {
	Data string `json:"data"`
}

// toolCall is a tool call or a change to one.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Name      string          `json:"name"`
	ToolKind  string          `json:"kind"`
	Status    string          `json:"status"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// block is a content block.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	MimeType string `json:"mimeType"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
	// Fields of a tool call's content.
	Content json.RawMessage `json:"content"`
	Path    string          `json:"path"` // of a diff
}

type permissionParams struct {
	ToolCall struct {
		toolCall
		Content json.RawMessage `json:"content"`
	} `json:"toolCall"`
	Options []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

type permissionResult struct {
	Outcome permissionOutcome `json:"outcome"`
}

type permissionOutcome struct {
	Outcome string `json:"outcome"`
	Option  string `json:"optionId,omitempty"`
}

// message is one decoded line of the protocol.
type message struct {
	kind   messageKind
	id     json.RawMessage // ID of a request or response, verbatim
	method string
	params json.RawMessage
	result json.RawMessage // nil if the response is an error
	err    *RPCError
}

type messageKind int

const (
	noise messageKind = iota // not a protocol message
	request
	notification
	response
)

// decode parses a line. It accepts more than the specification: fields in any order, IDs of any type, a
// missing "jsonrpc", an error that is a string.
func decode(line []byte) message {
	line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\uFEFF"))
	if len(line) == 0 || line[0] != '{' {
		return message{}
	}
	var wire struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &wire) != nil {
		return message{}
	}
	m := message{id: wire.ID, params: wire.Params, result: wire.Result}
	if isNull(m.id) {
		m.id = nil
	}
	if !isNull(wire.Method) {
		if json.Unmarshal(wire.Method, &m.method) != nil || m.method == "" {
			return message{}
		}
		m.kind = notification
		if m.id != nil {
			m.kind = request
		}
		return m
	}
	if !isNull(wire.Error) {
		m.kind, m.err, m.result = response, readError(wire.Error), nil
		return m // even without an ID: the agent could not parse our message
	}
	if m.id == nil {
		return message{}
	}
	if m.kind = response; m.result == nil {
		m.result = json.RawMessage("null")
	}
	return m
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// key normalizes an ID for lookup: agents return the number 1 as 1, 1.0 or "1".
func key(id json.RawMessage) string {
	text := string(id)
	if quoted := ""; json.Unmarshal(id, &quoted) == nil {
		text = quoted
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return text
}

// RPCError is an error response from the other side.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// JSON-RPC error codes. Other values occur: Gemini CLI uses HTTP statuses.
const (
	codeParse          = -32700
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeAuthRequired   = -32000
	codeNotFound       = -32002
)

// Error returns the message followed by any text in the data.
func (e *RPCError) Error() string {
	text := strings.TrimSpace(e.Message)
	if text == "" {
		text = "error " + strconv.Itoa(e.Code)
	}
	if more := e.details(); more != "" && !strings.Contains(text, more) {
		text += ": " + more
	}
	return text
}

// details returns the text contained in data.
func (e *RPCError) details() string {
	var text string
	if json.Unmarshal(e.Data, &text) == nil {
		return strings.TrimSpace(text)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Data, &fields) != nil {
		return ""
	}
	for _, name := range []string{"details", "detail", "message", "error", "reason"} {
		if json.Unmarshal(fields[name], &text) == nil && strings.TrimSpace(text) != "" {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// readError decodes an error of any form.
func readError(raw json.RawMessage) *RPCError {
	var wire struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &wire) != nil {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // on failure, use the raw text
		return &RPCError{Code: codeInternal, Message: text}
	}
	e := &RPCError{Code: codeInternal, Message: wire.Message, Data: wire.Data}
	if n, err := strconv.ParseFloat(strings.Trim(string(wire.Code), `"`), 64); err == nil && n > -1e9 && n < 1e9 {
		e.Code = int(n)
	}
	return e
}

// outgoing is a message that uwf sends. Its field order suits people who read the recorded stream.
type outgoing struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *outgoingError  `json:"error,omitempty"`
}

type outgoingError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// encode returns a message as a line.
func encode(m outgoing) ([]byte, error) {
	m.JSONRPC = "2.0"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // keep the angle brackets in prompts readable
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
