package llm

import (
	"bytes"
	"io"
	"maps"
	"net"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// written is what a request wrote, for the next one. A conversation only grows
// at its end, so most of a request is what the one before it was: that is kept
// as bytes, and a request costs what is new in it.
type written struct {
	q      quirks
	groups []group
	tools  declarations
}

// declarations are tools as they are written.
type declarations struct {
	list []Tool
	wire []byte
}

// group is a message of the system or the model with what follows it up to the
// next one: results of tools, users' messages. How it is written depends on
// nothing outside it.
type group struct {
	messages []Message
	marks    marks
	wire     []byte
}

// groupLen is how many of the messages belong to the group that they begin with.
func groupLen(messages []Message) int {
	for i, m := range messages[1:] {
		if begins(m) {
			return i + 1
		}
	}
	return len(messages)
}

// groups is how many groups a conversation has.
func groups(messages []Message) int {
	n := min(len(messages), 1)
	for i := 1; i < len(messages); i++ {
		if begins(messages[i]) {
			n++
		}
	}
	return n
}

// begins reports whether a message begins a group. A reply that says nothing is
// not written at all.
func begins(m Message) bool {
	switch m.Role {
	case protocol.TurnTool, protocol.TurnUser:
		return false
	case protocol.TurnAssistant:
		return m.Content != "" || len(m.ToolCalls) > 0
	}
	return true
}

// group takes the i-th group from the request before, if it was the same.
func (w *written) group(i int, q quirks, m marks, messages []Message) (group, bool) {
	if w == nil || w.q != q || i >= len(w.groups) || w.groups[i].marks != m || !slices.EqualFunc(w.groups[i].messages, messages, sameMessage) {
		return group{}, false
	}
	return w.groups[i], true
}

// sameMessage compares by value. Strings that are the same in memory, as they
// are from request to request, are compared in no time.
func sameMessage(a, b Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.ToolCallID == b.ToolCallID && a.Source == b.Source &&
		sameExtra(a.Extra, b.Extra) && slices.EqualFunc(a.ToolCalls, b.ToolCalls, sameCall)
}

func sameCall(a, b ToolCall) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Args == b.Args && sameExtra(a.Extra, b.Extra)
}

func sameExtra[V ~[]byte](a, b map[string]V) bool {
	return maps.EqualFunc(a, b, func(a, b V) bool { return bytes.Equal(a, b) })
}

// declared writes tools, or takes them from the request before. They are known
// by their place, since they hold schemas of any type.
func (w *written) declared(tools []Tool) (declarations, error) {
	if w != nil && len(w.tools.list) == len(tools) && &w.tools.list[0] == &tools[0] {
		return w.tools, nil
	}
	wire, err := marshal(wireTools(tools))
	return declarations{tools, wire}, err
}

// body is what is sent, in pieces: copying a long conversation together for each
// request would cost more than everything else about it.
type body struct {
	pieces net.Buffers
	size   int64
}

// newBody puts a request together; tools may be nil, fields is a JSON object.
func newBody(messages [][]byte, tools, fields []byte) *body {
	b := &body{pieces: make(net.Buffers, 0, 2*len(messages)+6)}
	b.add([]byte(`{"messages":[`))
	for i, m := range messages {
		if i > 0 {
			b.add([]byte{','})
		}
		b.add(m)
	}
	b.add([]byte("],"))
	if tools != nil {
		b.add([]byte(`"tools":`), tools, []byte{','})
	}
	b.add(fields[1:])
	return b
}

func (b *body) add(pieces ...[]byte) {
	for _, p := range pieces {
		b.pieces = append(b.pieces, p)
		b.size += int64(len(p))
	}
}

// reader reads the body from its beginning.
func (b *body) reader() io.ReadCloser {
	pieces := slices.Clone(b.pieces) // reading uses them up
	return io.NopCloser(&pieces)
}
