package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/util/exactjson"
)

// ParseArgs reads the arguments of a tool call. It accepts what models are
// known to send instead of an object: nothing, null, an object written as a
// string, a code fence around it, trailing commas, raw control characters
// inside strings. Cut JSON and two objects are errors, since guessing which
// half was meant would do the wrong thing.
func ParseArgs(raw string) (map[string]any, error) {
	text := strings.TrimSpace(raw)
	if text == "" {
		return map[string]any{}, nil
	}
	args, err := strictArgs(text)
	if err == nil {
		return args, nil
	}
	repaired := repair(unfence(text))
	if args, again := strictArgs(repaired); again == nil {
		return args, nil
	}
	return nil, err
}

// strictArgs reads one JSON object, null, or a string that holds an object.
func strictArgs(text string) (map[string]any, error) {
	v, err := oneValue(text)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		if v, err = oneValue(s); err != nil {
			return nil, err
		}
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	}
	return nil, errors.New("want a JSON object")
}

// oneValue reads a text that is exactly one JSON value.
func oneValue(text string) (any, error) {
	if json.Valid([]byte(text)) { // what would be changed in silence, the model is told
		if err := exactjson.Check([]byte(text)); err != nil {
			return nil, err
		}
	}
	d := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("the JSON ends in the middle")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the JSON object at offset %d", d.InputOffset())
	}
	return v, nil
}

// unfence takes a Markdown code fence off.
func unfence(text string) string {
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	if first, rest, ok := strings.Cut(body, "\n"); ok && !strings.Contains(first, "{") {
		body = rest
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
}

// repair escapes raw control characters in strings and drops commas before a
// closing bracket. Anything else it leaves alone.
func repair(text string) string {
	var b strings.Builder
	inString, escaped := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString && c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		case !inString && c == ',' && closes(text[i+1:]):
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// closes reports whether the next thing in text closes an object or a list.
func closes(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '}' || text[0] == ']')
}

// wireArgs is the form in which a call's arguments go back to an endpoint: the
// model's own text where it is an object, so that a prompt cache hits; else
// what was understood. Templates on servers fail on anything but an object.
func wireArgs(raw string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &object) == nil && object != nil {
		return raw
	}
	args, err := ParseArgs(raw)
	if err != nil {
		return "{}"
	}
	b, err := marshal(args)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// marshal is json.Marshal that leaves <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
