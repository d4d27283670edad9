package llm

import (
	"encoding/json"
	"strings"
)

// extras are fields that this package does not interpret, while a reply is put
// together. The zero value is empty.
type extras map[string]*pieces

// add adds a field, or goes on with one that came in pieces: strings are joined,
// lists are appended to, of anything else the last value counts.
func (e *extras) add(field string, raw json.RawMessage) {
	if *e == nil {
		*e = extras{}
	}
	if (*e)[field] == nil {
		(*e)[field] = &pieces{}
	}
	(*e)[field].add(raw)
}

// whole are the fields, nil if there are none.
func (e extras) whole() map[string]json.RawMessage {
	if len(e) == 0 {
		return nil
	}
	m := make(map[string]json.RawMessage, len(e))
	for field, p := range e {
		m[field] = p.whole()
	}
	return m
}

// pieces is one field. A single piece stays as it came; more are read once each,
// because a model's thoughts come in thousands of them.
type pieces struct {
	first json.RawMessage // while it is the only one
	text  *strings.Builder
	value any // if it is no text
}

func (p *pieces) add(raw json.RawMessage) {
	var v any
	switch {
	case p.first == nil && p.text == nil && p.value == nil:
		p.first = append(json.RawMessage(nil), raw...)
		return
	case json.Unmarshal(raw, &v) != nil:
		return
	case p.first != nil:
		var first any
		if json.Unmarshal(p.first, &first) != nil {
			return
		}
		p.first = nil
		p.merge(first)
	}
	p.merge(v)
}

// merge goes on with a value that has been read.
func (p *pieces) merge(v any) {
	switch v := v.(type) {
	case string:
		if p.text == nil {
			p.text, p.value = &strings.Builder{}, nil
		}
		p.text.WriteString(v)
		return
	case []any:
		if old, ok := p.value.([]any); ok {
			p.value = mergeLists(old, v)
			return
		}
	}
	p.text, p.value = nil, v
}

// empty reports whether there is nothing but an empty text.
func (p *pieces) empty() bool {
	return string(p.first) == `""` || p.text != nil && p.text.Len() == 0
}

func (p *pieces) whole() json.RawMessage {
	if p.first != nil {
		return p.first
	}
	v := p.value
	if p.text != nil {
		v = p.text.String()
	}
	b, err := marshal(v)
	if err != nil {
		return json.RawMessage("null") // cannot happen: it came from JSON
	}
	return b
}

// mergeLists appends the entries of b, except those that go on with an entry of
// the same index: a stream of reasoning_details sends the text in pieces and
// the signature last.
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

// mergePart joins what is text; the other fields of a piece repeat the same
// value in every piece.
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
