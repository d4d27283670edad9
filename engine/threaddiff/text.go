package threaddiff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Text writes a diff for people.
func Text(d Diff) string {
	var b strings.Builder
	if d.Shared > 0 {
		fmt.Fprintf(&b, "  %s in common\n", render.Count(d.Shared, "step"))
	}
	if more := d.Same - d.Shared; more > 0 {
		fmt.Fprintf(&b, "  %s done again, with the same result\n", render.Count(more, "step"))
	}
	if d.At == nil {
		return b.String()
	}
	writeChanges(&b, *d.At, d.Changes)
	for _, p := range d.Rest {
		fmt.Fprintf(&b, "  step %d: %s\n", p.Number, brief(p))
	}
	return b.String()
}

// writeChanges tells how the step differs at which two threads part.
func writeChanges(b *strings.Builder, number int, changes []Change) {
	at := fmt.Sprintf("step %d", number)
	if number == 0 {
		at = "the start"
	}
	if len(changes) == 1 && changes[0].Field == fieldStep {
		c := changes[0]
		fmt.Fprintf(b, "%s %s: %s\n", mark(c), at, words(cmp.Or(c.Old, c.New)))
		return
	}
	fmt.Fprintf(b, "~ %s\n", at)
	for _, c := range changes {
		fmt.Fprintf(b, "  %s %s\n", mark(c), c.Field)
		for _, line := range workflowdiff.Lines(words(c.Old), words(c.New)) {
			fmt.Fprintf(b, "      %s\n", line)
		}
	}
}

func mark(c Change) string {
	switch {
	case c.Old == nil:
		return "+"
	case c.New == nil:
		return "-"
	}
	return "~"
}

func brief(p Pair) string {
	old, new := briefStep(p.Old), briefStep(p.New)
	if old == new {
		return old + " in both"
	}
	return old + " | " + new
}

func briefStep(s *Brief) string {
	if s == nil {
		return "(none)"
	}
	text := s.Role
	if m, ok := s.Output.(map[string]any); ok {
		if status, ok := m[protocol.StatusKey].(string); ok {
			text += " " + status
		}
	}
	return plaintext.Line(text)
}

// words are the lines of a value: a text as it is, anything else as JSON.
func words(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // all values come from JSON
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(buf.String())
}
