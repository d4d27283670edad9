package cmdline

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// UsageError is an error of the command line.
func UsageError(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeUsage, Message: message, Hints: hints}
}

// NotFound is the error for a thing named on the command line that is not there.
func NotFound(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: message, Hints: hints}
}

// Invalid is the error for a file or value with wrong content.
func Invalid(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: message, Hints: hints}
}

// Report prints an error as text, and as JSON too when results are JSON, so
// that a script finds the code and a person the words. Errors quote files and
// agents, so they are escaped wherever they go: logs are read on terminals, too.
// A line of the message that could be taken for one of ours is indented.
func Report(w io.Writer, program string, e *protocol.Error, asJSON bool) {
	fmt.Fprintf(w, "%s: %s\n", program, Quoted(plaintext.Escape(strings.TrimRight(e.Message, "\r\n"))))
	for _, h := range e.Hints {
		fmt.Fprintf(w, "hint: %s\n", strings.ReplaceAll(plaintext.Escape(h), "\n", " "))
	}
	if !asJSON {
		return
	}
	type body struct {
		Code    protocol.Code `json:"code"`
		Message string        `json:"message"`
		Hint    string        `json:"hint,omitempty"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // hints have <thread> in them
	// Strings always encode, and there is nobody to tell if w is closed.
	_ = enc.Encode(map[string]body{"error": {e.Code, e.Message, strings.Join(e.Hints, "\n")}})
}

// Quoted indents the lines of a text, but for the first, that look as if we had said
// them: what begins with a short word and a colon, as hint: and uwf: do, or as JSON.
func Quoted(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines[1:] {
		word, _, labelled := strings.Cut(line, ":")
		if strings.HasPrefix(line, "  ") {
			continue // far enough in
		}
		if labelled && isLabel(word) || strings.HasPrefix(line, "{") {
			lines[i+1] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// isLabel reports whether a word is one that we begin lines with, or may be read as it.
func isLabel(word string) bool {
	var b strings.Builder
	for _, r := range strings.ToLower(word) {
		switch {
		case r > 0x7E:
			return true // it may look like any other
		case r >= 'a' && r <= 'z':
			b.WriteRune(r)
		}
	}
	switch label := b.String(); label {
	case "hint", "note", "warning", "error", "ocas":
		return true
	default:
		return strings.HasPrefix(label, "uwf") && len(label) < 16
	}
}
