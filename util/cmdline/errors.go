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
	return &protocol.Error{Code: protocol.CodeUsage, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// maxMessage bounds a message, which may quote an argument of any length.
const maxMessage = 1000

// NotFound is the error for a thing named on the command line that is not there.
func NotFound(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// Invalid is the error for a file or value with wrong content.
func Invalid(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: message, Hints: hints}
}

// Report prints an error as text, and as JSON too when results are JSON, so
// that a script finds the code and a person the words. Errors quote files and
// agents, so they are escaped wherever they go: logs are read on terminals, too.
// Only the first line of the message begins at the margin: what a stranger has said in
// it cannot be taken for a hint.
func Report(w io.Writer, program string, e *protocol.Error, asJSON bool) {
	fmt.Fprintf(w, "%s: %s\n", program, plaintext.Indent(plaintext.Escape(strings.TrimRight(e.Message, "\r\n"))))
	for _, h := range e.Hints {
		fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
	}
	if !asJSON {
		return
	}
	type body struct {
		Code    protocol.Code `json:"code"`
		Message string        `json:"message"`
		Hint    string        `json:"hint,omitempty"`
		// Machine: another machine may succeed ([protocol.OfMachine]).
		Machine bool `json:"machine,omitempty"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // hints have <thread> in them
	// Strings always encode, and there is nobody to tell if w is closed.
	_ = enc.Encode(map[string]body{"error": {e.Code, e.Message, strings.Join(e.Hints, "\n"), protocol.OfMachine(e)}})
}
