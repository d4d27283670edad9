package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// calls assembles the tool calls of a reply. Servers number the pieces of a
// stream in their own ways: properly; all with index 0 but different ids; all
// with index 0 and no ids; without an index. So a piece goes to the call with
// its index or id, unless it plainly begins another one.
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

// add takes a value of tool_calls. In a whole message each entry is a call.
func (c *calls) add(raw json.RawMessage, whole bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw} // one call, and no list of it
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

// readPiece reads an entry; what it does not know is kept.
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

// argsText is what a piece adds to the arguments: the string's value, or the
// JSON itself where a server sends an object.
func argsText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		return text(raw)
	}
	return string(raw)
}

// find returns the call that a piece goes on with, nil if it begins a new one.
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

// candidate is the last call with the piece's index, or without an index the
// one with its id, or the last one.
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
		c.name = p.name // once: some servers repeat it in every piece
	}
	c.args.WriteString(p.args)
	for _, x := range p.extra {
		c.extra.add(x.field, x.raw)
	}
}

// whole reports whether the arguments so far are a complete JSON object.
func (c *call) whole() bool {
	if !bytes.HasSuffix(bytes.TrimRight(c.args.Bytes(), " \t\r\n"), []byte("}")) {
		return false // seen at once, since it is asked of every piece
	}
	var object map[string]json.RawMessage
	return json.Unmarshal(c.args.Bytes(), &object) == nil
}

// complete reports whether there are calls and all are whole: then a stream
// that ends without saying so has lost nothing.
func (c *calls) complete() bool {
	for _, have := range c.list {
		if !have.whole() {
			return false
		}
	}
	return len(c.list) > 0
}

// soFar are calls that are still being written: their arguments end anywhere.
func (c *calls) soFar() []ToolCall {
	var list []ToolCall
	for _, have := range c.list {
		list = append(list, ToolCall{ID: have.id, Name: have.name, Args: have.args.String()})
	}
	return list
}

// finish returns the calls. Each gets an id that no call of the conversation
// has: endpoints leave ids out, or begin again with the same ones in every reply.
func (c *calls) finish(conversation ids) []ToolCall {
	var list []ToolCall
	given := map[string]bool{}
	taken := func(id string) bool { return id == "" || given[id] || conversation.has(id) }
	for _, have := range c.list {
		id := have.id
		for n := conversation.size() + len(given); taken(id); n++ {
			id = fmt.Sprintf("uwf%06d", n) // nine letters and digits: Mistral takes nothing else
		}
		given[id] = true
		list = append(list, ToolCall{ID: id, Name: have.name, Args: have.args.String(), Extra: have.extra.whole()})
	}
	return list
}

// ids are those of the calls in a conversation. They are only looked for when a
// reply has calls: a list of them for each request would cost more.
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

// size is how many calls there are.
func (l ids) size() int {
	n := 0
	for _, m := range l {
		n += len(m.ToolCalls)
	}
	return n
}
