package cliagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/util/exactjson"
)

// Object reads the fields of a JSON object that v, a pointer to a struct, has. A field with
// another type than v's is skipped like an unknown one: the next version of a program may
// write it differently, and the rest still counts. It reports whether data is exactly one JSON
// object.
func Object(data []byte, v any) bool {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return false
	}
	var other *json.UnmarshalTypeError
	err := json.Unmarshal(data, v)
	return err == nil || errors.As(err, &other)
}

// TextOf is what a JSON value says to a person: a string itself, content blocks a
// line each, an error its message; "" for null. Anything else is shown as it is
// written.
func TextOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) == nil {
		lines := make([]string, len(blocks))
		for i, b := range blocks {
			lines[i] = blockText(b)
		}
		return strings.Join(lines, "\n")
	}
	var failure struct {
		Message string `json:"message"`
		Data    struct {
			Message string `json:"message"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	switch Object(raw, &failure); {
	case failure.Message != "":
		return failure.Message
	case failure.Data.Message != "":
		return failure.Data.Message
	case len(failure.Error) > 0:
		return TextOf(failure.Error)
	}
	return string(raw)
}

// blockText is the text of a content block. Other kinds of block are named; anything else is
// shown as written.
func blockText(raw json.RawMessage) string {
	var b struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	switch Object(raw, &b); {
	case b.Text != nil:
		return *b.Text
	case b.Type != "":
		return "[" + b.Type + "]"
	}
	return TextOf(raw)
}

// Content is the text of a model's message in JSON: a string, or blocks of which
// some have text. Decoding it never fails.
type Content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = ""
	var blocks []struct {
		Text string `json:"text"`
	}
	if bytes.HasPrefix(data, []byte("[")) {
		_ = json.Unmarshal(data, &blocks) // what has no text in it says nothing
		for _, block := range blocks {
			*c += Content(block.Text)
		}
		return nil
	}
	*c = Content(blockText(data))
	return nil
}

// Arguments are the arguments of a tool: a JSON value, which some programs write as a string.
// A string that is not JSON is left as it is.
func Arguments(v any) any {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.RawMessage:
		text = string(v)
	default:
		return v
	}
	if text == "" {
		return nil
	}
	var value any
	if exactjson.Check([]byte(text)) != nil || json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	if inner, ok := value.(string); ok && inner != text {
		return Arguments(inner)
	}
	return value
}
