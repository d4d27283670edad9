package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// readReply decodes a reply, whatever its content type: some endpoints send one JSON text although a stream
// was requested, or a web page with status 200. used contains the call IDs already in the conversation.
//
// watch, if not nil, is called for each piece of a stream. With an error, the response contains the cost
// reported so far.
func (c *Client) readReply(r *bufio.Reader, h http.Header, used ids, watch func(soFar func() Message)) (resp Response, err error) {
	a := assembler{used: used}
	defer func() {
		if err != nil && a.usage != nil {
			resp = Response{Usage: c.usage(a.usage)}
		}
	}()
	first, err := firstByte(r)
	if err != nil {
		return Response{}, err
	}
	if first != '{' && first != '[' && first != '<' {
		done, err := readEvents(r, func(data []byte) error {
			err := c.chunk(&a, data, h)
			if err == nil && watch != nil {
				watch(a.soFar)
			}
			return err
		})
		if err != nil {
			return Response{}, err
		}
		return c.finish(&a, done)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return Response{}, err
	}
	if first == '<' {
		e := c.httpError(http.StatusOK, h, body)
		e.Kind = NotFound
		return Response{}, e
	}
	if err := c.chunk(&a, body, h); err != nil {
		return Response{}, err
	}
	return c.finish(&a, true)
}

// firstByte skips white space and returns the next byte without consuming it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b, r.UnreadByte()
		}
	}
}

// wireReply is a chunk of a stream, or a whole reply.
type wireReply struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Choices []wireChoice    `json:"choices"`
	Usage   *wireUsage      `json:"usage"`
}

// failed reports whether the reply is an error; some replies have an empty error field.
func (w *wireReply) failed() bool {
	switch string(w.Error) {
	case "", "null", `""`, "{}", "[]", "false":
		return w.Object == "error" || w.Type == "error"
	}
	return true
}

type wireChoice struct {
	Index        int                        `json:"index"`
	Delta        map[string]json.RawMessage `json:"delta"`
	Message      map[string]json.RawMessage `json:"message"`
	FinishReason string                     `json:"finish_reason"`
	Usage        *wireUsage                 `json:"usage"` // Moonshot
}

// chunk adds a chunk to the reply.
func (c *Client) chunk(a *assembler, data []byte, h http.Header) error {
	var w wireReply
	var other *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &w); {
	case errors.As(err, &other) && other.Value == "array" && other.Field == "":
		return c.httpError(http.StatusOK, h, data) // Google's errors are lists
	case err != nil && other == nil:
		return err
	} // a field of an unexpected type is skipped; the rest is used
	if w.failed() {
		return c.httpError(http.StatusOK, h, data)
	}
	if w.Model != "" {
		a.model = w.Model
	}
	if w.Usage != nil {
		a.usage = w.Usage
	}
	for _, choice := range w.Choices {
		if choice.Index != 0 {
			continue // only one was requested
		}
		a.begun = true
		if choice.Usage != nil {
			a.usage = choice.Usage
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		a.fields(choice.Delta, false)
		a.fields(choice.Message, true)
	}
	return nil
}

// assembler collects the parts of a reply.
type assembler struct {
	used      ids
	begun     bool // a choice has arrived
	model     string
	finish    string
	content   strings.Builder
	reasoning strings.Builder
	field     string // the reasoning field in use; some endpoints send two
	refusal   strings.Builder
	calls     calls
	extra     extras
	usage     *wireUsage
}

// fields adds the fields of a delta or of a whole message.
func (a *assembler) fields(m map[string]json.RawMessage, whole bool) {
	for name, raw := range m {
		if string(raw) == "null" {
			continue
		}
		switch name {
		case "content":
			text, thought := readContent(raw)
			a.content.WriteString(text)
			a.reasoning.WriteString(thought)
		case "tool_calls":
			a.calls.add(raw, whole)
		case "refusal":
			a.refusal.WriteString(text(raw))
		case "role", "function_call", "annotations", "audio", "name":
			// Known fields that are never sent back.
		case "reasoning_content", "reasoning", "reasoning_text":
			// Handled below, so that the choice does not depend on map order.
		default:
			a.extra.add(name, raw)
		}
	}
	for _, name := range reasoningFields {
		if raw, ok := m[name]; ok && string(raw) != "null" {
			a.thought(name, raw)
		}
	}
}

// soFar returns the incomplete reply.
func (a *assembler) soFar() Message {
	content, thought := splitThinking(a.content.String())
	return Message{
		Role: protocol.TurnAssistant, Content: content, Reasoning: a.reasoning.String() + thought, ToolCalls: a.calls.soFar(),
	}
}

// finish checks that the reply is complete and returns it.
func (c *Client) finish(a *assembler, done bool) (Response, error) {
	switch a.finish {
	case "content_filter":
		return Response{}, &Error{Kind: ContentFilter, Message: "a filter stopped the reply"}
	case "error", "network_error":
		return Response{}, &Error{Kind: errorkind.Server, Message: "the endpoint ended the reply with an error"}
	}
	if a.finish == "" && !done && !a.calls.complete() {
		return Response{}, &Error{Kind: StreamCut, Message: "the reply was cut off"}
	}
	if !a.begun {
		return Response{}, &Error{Kind: errorkind.Server, Message: "the reply has no choices", empty: true}
	}
	content, thought := splitThinking(a.content.String())
	m := Message{
		Role: protocol.TurnAssistant, Content: content, Reasoning: a.reasoning.String() + thought,
		ToolCalls: a.calls.finish(a.used), Source: c.Source(), Extra: a.extra.whole(),
	}
	resp := Response{Message: m, Finish: FinishStop, Usage: c.usage(a.usage), Model: a.model}
	switch {
	case a.finish == string(FinishLength):
		resp.Finish = FinishLength
	case len(m.ToolCalls) > 0:
		resp.Finish = FinishCalls
	case a.refusal.Len() > 0 && content == "":
		resp.Finish = FinishRefusal
		resp.Message.Content = a.refusal.String()
	}
	return resp, nil
}

// text returns the value of a JSON string, or "".
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// calls assembles the tool calls of a reply. Servers number the pieces of a stream in different ways:
// correctly; all with index 0 but different IDs; all with index 0 and no IDs; without an index. So a piece
// goes to the call with its index or ID, unless it clearly begins another one.
type calls struct{ list []*call }

type call struct {
	index *int
	id    string
	name  string
	args  bytes.Buffer
	extra extras
}

// piece is one entry of tool_calls.
type piece struct {
	index *int
	id    string
	name  string
	args  string
	extra []extraPiece
}

type extraPiece struct {
	field string
	raw   json.RawMessage
}

// add adds a value of tool_calls. In a whole message each entry is a call.
func (c *calls) add(raw json.RawMessage, whole bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw} // a single call instead of a list
	}
	for _, one := range list {
		var entry map[string]json.RawMessage
		if json.Unmarshal(one, &entry) != nil || len(entry) == 0 {
			continue
		}
		p := readPiece(entry)
		to := c.find(p)
		if whole || to == nil {
			to = &call{index: p.index}
			c.list = append(c.list, to)
		}
		to.take(p)
	}
}

// readPiece decodes an entry and keeps unknown fields.
func readPiece(entry map[string]json.RawMessage) piece {
	var p piece
	for field, raw := range entry {
		switch field {
		case "index":
			var i int
			if json.Unmarshal(raw, &i) == nil && string(raw) != "null" {
				p.index = &i
			}
		case "id":
			p.id = text(raw)
		case "type":
		case "function":
			var f struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"arguments"`
			}
			if json.Unmarshal(raw, &f) == nil {
				p.name, p.args = f.Name, argsText(f.Args)
			}
		default:
			if string(raw) != "null" {
				p.extra = append(p.extra, extraPiece{field, raw})
			}
		}
	}
	return p
}

// argsText returns a piece of the arguments: the string's value, or the JSON itself if a server sends an
// object.
func argsText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		return text(raw)
	}
	return string(raw)
}

// find returns the call that a piece continues, or nil if it begins a new one.
func (c *calls) find(p piece) *call {
	current := c.candidate(p)
	if current == nil {
		return nil
	}
	if p.id != "" && current.id != "" {
		if p.id == current.id {
			return current
		}
		return c.byID(p.id)
	}
	if p.id == "" && p.name != "" && (current.whole() || current.name != "" && current.name != p.name) {
		return nil
	}
	return current
}

// candidate returns the last call with the piece's index, or without an index the call with its ID, or the
// last one.
func (c *calls) candidate(p piece) *call {
	if p.index == nil {
		if found := c.byID(p.id); found != nil || p.id != "" {
			return found
		}
		if len(c.list) == 0 {
			return nil
		}
		return c.list[len(c.list)-1]
	}
	for i := len(c.list) - 1; i >= 0; i-- {
		if at := c.list[i].index; at != nil && *at == *p.index {
			return c.list[i]
		}
	}
	return nil
}

func (c *calls) byID(id string) *call {
	for _, have := range c.list {
		if id != "" && have.id == id {
			return have
		}
	}
	return nil
}

func (c *call) take(p piece) {
	if c.id == "" {
		c.id = p.id
	}
	if c.name == "" {
		c.name = p.name // only once: some servers repeat it in every piece
	}
	c.args.WriteString(p.args)
	for _, x := range p.extra {
		c.extra.add(x.field, x.raw)
	}
}

// whole reports whether the arguments so far are a complete JSON object.
func (c *call) whole() bool {
	if !bytes.HasSuffix(bytes.TrimRight(c.args.Bytes(), " \t\r\n"), []byte("}")) {
		return false // cheap check first, because this runs for every piece
	}
	var object map[string]json.RawMessage
	return json.Unmarshal(c.args.Bytes(), &object) == nil
}

// complete reports whether there are calls and all of them are complete. A stream that then ends without a
// finish reason has lost nothing.
func (c *calls) complete() bool {
	for _, have := range c.list {
		if !have.whole() {
			return false
		}
	}
	return len(c.list) > 0
}

// soFar returns incomplete calls, whose arguments may end anywhere.
func (c *calls) soFar() []ToolCall {
	var list []ToolCall
	for _, have := range c.list {
		list = append(list, ToolCall{ID: have.id, Name: have.name, Args: have.args.String()})
	}
	return list
}

// finish returns the calls. Each gets an ID that is unique in the conversation, because endpoints omit IDs or
// reuse the same ones in every reply.
func (c *calls) finish(conversation ids) []ToolCall {
	var list []ToolCall
	given := map[string]bool{}
	taken := func(id string) bool { return id == "" || given[id] || conversation.has(id) }
	for _, have := range c.list {
		id := have.id
		for n := conversation.size() + len(given); taken(id); n++ {
			id = fmt.Sprintf("uwf%06d", n) // nine letters and digits, the only form that Mistral accepts
		}
		given[id] = true
		list = append(list, ToolCall{ID: id, Name: have.name, Args: have.args.String(), Extra: have.extra.whole()})
	}
	return list
}

// ids contains the messages whose call IDs are in use. They are scanned only when a reply has calls, because
// building a set for each request would cost more.
type ids []Message

func (l ids) has(id string) bool {
	for _, m := range l {
		for _, call := range m.ToolCalls {
			if call.ID == id {
				return true
			}
		}
	}
	return false
}

// size returns the number of calls.
func (l ids) size() int {
	n := 0
	for _, m := range l {
		n += len(m.ToolCalls)
	}
	return n
}

// extras collects fields that this package does not interpret, in the pieces in which a reply arrives. The zero
// value is empty.
type extras map[string][]json.RawMessage

func (e *extras) add(field string, raw json.RawMessage) {
	if *e == nil {
		*e = extras{}
	}
	(*e)[field] = append((*e)[field], raw)
}

// whole returns the fields, or nil if there are none. A single piece is kept verbatim.
func (e extras) whole() map[string]json.RawMessage {
	if len(e) == 0 {
		return nil
	}
	m := make(map[string]json.RawMessage, len(e))
	for field, pieces := range e {
		if m[field] = pieces[0]; len(pieces) > 1 {
			m[field] = joined(pieces)
		}
	}
	return m
}

// joined joins strings and appends lists; for other types the last value is kept.
func joined(pieces []json.RawMessage) json.RawMessage {
	var whole any
	var text []byte // while whole is a string
	for _, raw := range pieces {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			continue
		}
		s, isText := v.(string)
		if _, was := whole.(string); isText && was {
			text = append(text, s...)
			continue
		}
		list, _ := v.([]any)
		if old, both := whole.([]any); both && list != nil {
			v = mergeLists(old, list)
		}
		whole, text = v, []byte(s)
	}
	if _, isText := whole.(string); isText {
		whole = string(text)
	}
	b, err := marshal(whole)
	if err != nil {
		return json.RawMessage("null") // cannot happen: it came from JSON
	}
	return b
}

// mergeLists appends the entries of b, or merges those with the index of an existing entry: a stream of
// reasoning_details sends the text in pieces and the signature last.
func mergeLists(a, b []any) []any {
	for _, entry := range b {
		piece, ok := entry.(map[string]any)
		if !ok || len(a) == 0 {
			a = append(a, entry)
			continue
		}
		last, ok := a[len(a)-1].(map[string]any)
		if !ok || piece["index"] == nil || last["index"] != piece["index"] || last["type"] != piece["type"] {
			a = append(a, entry)
			continue
		}
		for k, v := range piece {
			last[k] = mergePart(k, last[k], v)
		}
	}
	return a
}

// mergePart joins text fields; other fields have the same value in every piece.
func mergePart(field string, old, piece any) any {
	a, isText := old.(string)
	b, both := piece.(string)
	if isText && both && (field == "text" || field == "summary" || field == "data") {
		return a + b
	}
	if piece == nil {
		return old
	}
	return piece
}

// maxReply bounds a reply, so that a broken endpoint cannot fill the memory.
const maxReply = 64 << 20

// maxPieces bounds the lines of one event, because parsing is tried after each of them.
const maxPieces = 1000

var (
	errTooLong  = errors.New("the reply is longer than 64 MiB")
	errBadEvent = errors.New("an event of the stream is not JSON")
)

// readEvents calls f with the JSON of each server-sent event until the stream ends, f fails, or [DONE]
// arrives (done is then true).
//
// Servers deviate from the standard: lines end in LF or CR LF, the space after "data:" and the empty line
// between events may be missing, and one JSON text may span several data lines. So an event is complete as
// soon as the collected data is valid JSON.
func readEvents(r *bufio.Reader, f func(data []byte) error) (done bool, err error) {
	var event []byte
	pieces := 0
	for {
		line, readErr := r.ReadBytes('\n')
		data, isData := dataOf(line)
		if isData && len(event) == 0 && bytes.Equal(data, []byte("[DONE]")) {
			return true, nil
		}
		if isData {
			event = append(event, data...)
			if pieces++; json.Valid(event) {
				if err := f(event); err != nil {
					return false, err
				}
				event, pieces = nil, 0
			} else {
				event = append(event, '\n')
			}
		}
		if len(event) > 0 && readErr == nil && (len(bytes.TrimSpace(line)) == 0 || pieces > maxPieces) {
			return false, errBadEvent
		}
		if errors.Is(readErr, io.EOF) {
			return false, nil
		}
		if readErr != nil {
			return false, readErr
		}
	}
}

// bounded is a reader that fails after maxReply bytes, so that an endless line does not fill the memory.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// dataOf returns the trimmed value of a data line.
func dataOf(line []byte) ([]byte, bool) {
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	data = bytes.TrimSpace(data)
	return data, ok && len(data) > 0
}
