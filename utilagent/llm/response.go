package llm

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// readReply reads a reply, whatever the endpoint calls it: some send one JSON
// text although a stream was asked for, or a web page with status 200. used are
// the ids of calls that the conversation has already.
//
// watch, if not nil, is called when a piece of a stream has come. With an error the
// response has what it cost, as far as the endpoint has said that.
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
		e.Kind = KindNotFound
		return Response{}, e
	}
	if err := c.chunk(&a, body, h); err != nil {
		return Response{}, err
	}
	return c.finish(&a, true)
}

// firstByte skips white space and looks at what follows.
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

// failed tells an error from a reply; some have an error that says nothing.
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

// chunk adds what came to the reply.
func (c *Client) chunk(a *assembler, data []byte, h http.Header) error {
	var w wireReply
	var other *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &w); {
	case errors.As(err, &other) && other.Value == "array" && other.Field == "":
		return c.httpError(http.StatusOK, h, data) // Google's errors are lists
	case err != nil && other == nil:
		return err
	} // a field of another type than usual is passed over: the rest still counts
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
			continue // only one was asked for
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

// assembler puts the parts of a reply together.
type assembler struct {
	used      ids
	begun     bool // there was a choice
	model     string
	finish    string
	content   strings.Builder
	reasoning strings.Builder
	field     string // that reasoning comes in; some endpoints send it in two
	refusal   strings.Builder
	calls     calls
	extra     extras
	usage     *wireUsage
}

// fields adds the fields of a delta, or of a whole message.
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
			// Known, and nothing that may go back.
		case "reasoning_content", "reasoning", "reasoning_text":
			// Below: which one counts must not depend on the order of a map.
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

// soFar is what a reply holds that is still being written.
func (a *assembler) soFar() Message {
	content, thought := splitThinking(a.content.String())
	return Message{
		Role: protocol.TurnAssistant, Content: content, Reasoning: a.reasoning.String() + thought, ToolCalls: a.calls.soFar(),
	}
}

// finish checks that the reply is whole and returns it.
func (c *Client) finish(a *assembler, done bool) (Response, error) {
	switch a.finish {
	case "content_filter":
		return Response{}, &Error{Kind: KindContentFilter, Message: "the reply was stopped by a filter"}
	case "error", "network_error":
		return Response{}, &Error{Kind: KindServer, Message: "the endpoint ended the reply with an error"}
	}
	if a.finish == "" && !done && !a.calls.complete() {
		return Response{}, &Error{Kind: KindStreamCut, Message: "the reply ended in the middle"}
	}
	if !a.begun {
		return Response{}, &Error{Kind: KindServer, Message: "the reply holds no choices", empty: true}
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

// text is a JSON string's value, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
