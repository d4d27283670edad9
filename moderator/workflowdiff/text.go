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

// Text formats changes for people: a line for each part, marked +, - or ~, followed by its old and new value,
// line by line.
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

// title formats a path.
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

// body formats the old and new value of a part. If only one side has the part, the title already shows that.
func body(c Change) []string {
	switch c.Op {
	case Added:
		return lines(c.New)
	case Removed:
		return lines(c.Old)
	}
	before, after := lines(c.Old), lines(c.New)
	if slices.Equal(before, after) { // they differ only invisibly
		before, after = []string{fmt.Sprintf("%q", c.Old)}, []string{fmt.Sprintf("%q", c.New)}
	}
	return lineDiff(before, after)
}

// lines formats a value: a text unchanged, a role or an edge in words, anything else as JSON.
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

// Lines compares two texts line by line. Old lines start with "-", new ones with "+". Equal lines far from
// any change are omitted.
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

// context is the number of equal lines shown around a change.
const context = 2

// lineDiff marks the lines of two texts with "-", "+" or " " and omits equal lines far from any change. If
// very many lines differ, it doesn't search for equal ones among them, which would take quadratic time.
func lineDiff(a, b []string) []string {
	const most = 2000
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var marked []string
	for _, line := range a[:head] {
		marked = append(marked, "  "+line)
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x) > most || len(y) > most {
		marked = append(marked, each("- ", x)...)
		marked = append(marked, each("+ ", y)...)
	} else {
		marked = append(marked, match(x, y)...)
	}
	for _, line := range a[len(a)-tail:] {
		marked = append(marked, "  "+line)
	}
	return near(marked)
}

func each(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}
	return out
}

// match returns the longest common subsequence.
func match(a, b []string) []string {
	longest := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	return append(append(out, each("- ", a[i:])...), each("+ ", b[j:])...)
}

// near omits equal lines without a change nearby.
func near(marked []string) []string {
	keep := make([]bool, len(marked))
	for i, line := range marked {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-context); k <= min(len(marked)-1, i+context); k++ {
			keep[k] = true
		}
	}
	var out []string
	for i, line := range marked {
		switch {
		case keep[i]:
			out = append(out, line)
		case i == 0 || keep[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}
