package acp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// message is one line of the protocol, as far as it was understood.
type message struct {
	kind   messageKind
	id     json.RawMessage // of a request and a response, as it was written
	method string
	params json.RawMessage
	result json.RawMessage // nil: the response is an error
	err    *RPCError
}

type messageKind int

const (
	noise messageKind = iota // not a message: agents print all sorts of things
	request
	notification
	response
)

// decode reads a line. It accepts what agents send, not only what the
// specification allows: any order of fields, ids of any type, a missing
// "jsonrpc", an error that is a text.
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
		return m // also without an id: the agent could not even read what we sent
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

// key is an id as something to look up: agents give back the number 1 as 1, 1.0
// or "1".
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

// RPCError is an error that the other side has answered with.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Codes of errors. Others exist: Gemini CLI uses the status of HTTP.
const (
	codeParse          = -32700
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeAuthRequired   = -32000
	codeNotFound       = -32002
)

// Error implements error: the message, and what data adds to it.
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

// details is what data says in words.
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

// readError reads an error whatever its form is.
func readError(raw json.RawMessage) *RPCError {
	var wire struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &wire) != nil {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // otherwise the raw text has to do
		return &RPCError{Code: codeInternal, Message: text}
	}
	e := &RPCError{Code: codeInternal, Message: wire.Message, Data: wire.Data}
	if n, err := strconv.ParseFloat(strings.Trim(string(wire.Code), `"`), 64); err == nil && n > -1e9 && n < 1e9 {
		e.Code = int(n)
	}
	return e
}

// outgoing is what we send. The order of the fields is for people who read the
// recorded stream.
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

// encode writes a message as a line.
func encode(m outgoing) ([]byte, error) {
	m.JSONRPC = "2.0"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // prompts are full of angle brackets
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
