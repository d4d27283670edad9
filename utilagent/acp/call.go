package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// call is a tool call as it is known so far.
type call struct {
	id      string
	message string // id of the message that it is part of
	title   string // the first one: often the tool's name, later what it does
	latest  string // title
	name    string
	kind    string
	paths   []string
	sub     bool

	input    json.RawMessage
	output   json.RawMessage
	content  json.RawMessage
	terminal strings.Builder // what came in an extension of Codex and Claude
}

// maxResult bounds the text of a result. An agent gives its model less.
const maxResult = 1 << 20

// change takes what an update says. What it does not say stays.
func (c *call) change(u update) {
	c.latest = cmp.Or(u.Title, c.latest)
	c.name = cmp.Or(u.Name, u.Meta.Claude.Tool, c.name)
	c.kind = cmp.Or(u.ToolKind, c.kind)
	if !isNull(u.RawInput) {
		c.input = u.RawInput
	}
	if !isNull(u.RawOutput) {
		c.output = u.RawOutput
	}
	if !isNull(u.Content) {
		c.content = u.Content
	}
	for _, l := range u.Locations {
		c.touches(l.Path)
	}
	for _, b := range blocks(u.Content) {
		c.touches(b.Path)
	}
	if o := u.Meta.Output; o != nil {
		c.terminal.Reset()
		c.prints(o.Data)
	}
	if o := u.Meta.OutputDelta; o != nil {
		c.prints(o.Data)
	}
}

// touches notes a path that the call is about.
func (c *call) touches(path string) {
	const maxPaths = 1000
	if path != "" && len(c.paths) < maxPaths {
		c.paths = append(c.paths, path)
	}
}

func (c *call) prints(text string) {
	c.terminal.WriteString(text[:min(len(text), max(0, maxResult-c.terminal.Len()))])
}

// word is a title that is a tool's name.
var word = lazyregexp.New(`^[A-Za-z_][\w.-]*$`)

// called is the tool's name, as well as it is known.
func (c *call) called() string {
	if c.name != "" {
		return c.name
	}
	if word().MatchString(c.title) {
		return c.title
	}
	// Ids of Gemini CLI begin with the name, twice.
	if name, rest, ok := strings.Cut(c.id, "__"); ok && name != "" && strings.HasPrefix(rest, name+"_") {
		return name
	}
	return cmp.Or(c.kind, "tool")
}

// args are the call's arguments; where the agent does not tell them, its title.
func (c *call) args() any {
	if !isNull(c.input) {
		return cliagent.Arguments(c.input)
	}
	return map[string]any{"title": cmp.Or(c.latest, c.title)}
}

// result is what the tool returned, as text.
func (c *call) result() string {
	text := readOutput(c.output)
	if text == "" {
		text = readContent(c.content)
	}
	if text == "" {
		text = c.terminal.String()
	}
	if len(text) > maxResult {
		text = text[:maxResult] + fmt.Sprintf("\n[%d bytes more]", len(text)-maxResult)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// readOutput reads a raw output: a text, an object that has one, or JSON.
func readOutput(raw json.RawMessage) string {
	if isNull(raw) {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil {
		for _, name := range []string{"output", "error", "formatted_output", "stdout", "text"} {
			if json.Unmarshal(fields[name], &text) == nil && text != "" {
				return text
			}
		}
		if len(fields) == 0 {
			return ""
		}
	}
	return string(raw)
}

// readContent reads the content of a tool call: a list of blocks.
func readContent(raw json.RawMessage) string {
	var texts []string
	for _, b := range blocks(raw) {
		switch b.Type {
		case "content":
			texts = append(texts, readBlock(b.Content))
		case "diff":
			texts = append(texts, "[changed "+b.Path+"]")
		default:
			texts = append(texts, b.read())
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// blocks reads a list of blocks; none if it is something else.
func blocks(raw json.RawMessage) []block {
	var list []block
	if isNull(raw) || raw[0] != '[' || lenient(raw, &list) != nil {
		return nil
	}
	return list
}

// readBlock reads one block of content as text.
func readBlock(raw json.RawMessage) string {
	var b block
	if isNull(raw) || lenient(raw, &b) != nil {
		return ""
	}
	return b.read()
}

func (b *block) read() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource":
		return cmp.Or(b.Resource.Text, "["+b.Resource.URI+"]")
	case "resource_link":
		return "[" + b.URI + "]"
	case "image", "audio":
		return "[" + strings.TrimSpace(b.Type+" "+b.MimeType) + "]"
	}
	return ""
}

// about says in a few words what the call does.
func (c *call) about() string {
	what := cmp.Or(c.latest, c.title)
	if what == "" || what == c.called() {
		return c.called()
	}
	return c.called() + ": " + what
}
