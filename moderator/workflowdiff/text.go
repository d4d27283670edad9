package workflowdiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Text writes changes for people: a line for each part, marked +, - or ~, and
// what it was and is below, line by line.
func Text(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s %s\n", mark(c.Op), title(c.Path))
		for _, line := range body(c) {
			if line == "" {
				b.WriteByte('\n')
				continue
			}
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return b.String()
}

func mark(op Op) string {
	switch op {
	case Added:
		return "+"
	case Removed:
		return "-"
	}
	return "~"
}

// title is a path in words.
func title(path []string) string {
	switch {
	case len(path) == 1:
		return path[0]
	case path[0] == "roles":
		return titled("role "+path[1], path[2:])
	case path[0] == "conditions":
		return titled("condition "+path[1], path[2:])
	case path[0] == "limits":
		return "limit " + path[1]
	case len(path) == 2:
		return "graph of " + path[1]
	}
	return titled("edge "+path[1]+" "+path[2], path[3:])
}

func titled(head string, rest []string) string {
	if len(rest) == 0 {
		return head
	}
	if rest[0] == "schema" {
		head, rest = head+": schema", rest[1:]
		if len(rest) > 0 {
			head += " "
		}
		return head + strings.Join(rest, ".")
	}
	return head + ": " + strings.Join(rest, ".")
}

// body shows what a part was and is. A part that only one side has is marked in
// its title already.
func body(c Change) []string {
	switch c.Op {
	case Added:
		return lines(c.New)
	case Removed:
		return lines(c.Old)
	}
	before, after := lines(c.Old), lines(c.New)
	if slices.Equal(before, after) { // they differ in what cannot be seen
		before, after = []string{fmt.Sprintf("%q", c.Old)}, []string{fmt.Sprintf("%q", c.New)}
	}
	return lineDiff(before, after)
}

// lines shows a value: a text as it is, a role or an edge in words, anything
// else as JSON.
func lines(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return strings.Split(plaintext.Escape(strings.TrimSuffix(v, "\n")), "\n")
	case protocol.Role:
		return lines(v.Description)
	case protocol.Edge:
		return append([]string{"to " + v.Role}, lines(none(v.Prompt))...)
	case protocol.Condition:
		return lines(v.Expression)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // all values come from JSON
		return []string{fmt.Sprint(v)}
	}
	return []string{strings.TrimSpace(buf.String())}
}

// Lines compares two texts line by line: what was begins with "-", what is with
// "+". Lines that are equal and far from any other are left out.
func Lines(before, after string) []string {
	return lineDiff(textLines(before), textLines(after))
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return lines(s)
}

func none(s string) any {
	if s == "" {
		return nil
	}
	return s
}
