package main

import (
	"regexp"
	"strings"
)

var commitLine = regexp.MustCompile(`(?m)^([0-9a-f]{7,}) (.+)$`)

// collectChanges reads the actual history.
func collectChanges() []turn {
	return []turn{
		calling("What happened?", toolCall{"run_command", map[string]any{"command": "git log --format='%h %s'"}}),
		func(c conversation) reply {
			changes := []map[string]any{}
			for _, m := range commitLine.FindAllStringSubmatch(c.lastResult(), -1) {
				changes = append(changes, map[string]any{"what": m[2], "commit": m[1], "breaking": false})
			}
			return ending("I have read the history.", field{"changes", changes})(c)
		},
	}
}

var listed = regexp.MustCompile(`(?m)^- (.+) \(([0-9a-f]{7,})\)`)

// writeNotes writes a line for each change, with more details on request.
func writeNotes(more string) []turn {
	return []turn{
		func(c conversation) reply {
			var b strings.Builder
			b.WriteString("# What is new\n\n")
			for _, m := range listed.FindAllStringSubmatch(c.told, -1) {
				b.WriteString("- " + m[1] + more + " (" + m[2] + ")\n")
			}
			return calling("", toolCall{"write_file", map[string]any{"path": "RELEASE-NOTES.md", "content": b.String()}})(c)
		},
		ending("Written.", field{"path", "RELEASE-NOTES.md"}),
	}
}

// proofread asks for more at first and later approves.
func proofread(verdict string) []turn {
	verdictOf := ending("I have read them.", field{"$status", verdict}, field{"path", "RELEASE-NOTES.md"})
	if verdict == "unclear" {
		verdictOf = ending("I have a question.", field{"$status", verdict}, field{"questions", []string{"What do I notice of that?"}})
	}
	return []turn{calling("", readFile("RELEASE-NOTES.md")), verdictOf}
}
