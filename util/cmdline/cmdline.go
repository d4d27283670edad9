// Package cmdline contains the command line conventions shared by all programs: flags before and after
// arguments, arguments checked against the usage, errors with a code and a hint, text output for people and
// JSON for programs.
package cmdline

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/terminal"
)

// FormatIn returns the value of --format in a command line that could not be parsed, so that the error has
// the right format.
func FormatIn(args []string) string {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--format="); ok {
			return v
		}
		if arg == "--json" {
			return "json"
		}
		if arg == "--format" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// UsageError returns an error about the command line.
func UsageError(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeUsage, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// maxMessage bounds the length of a message, which can quote an argument of any length.
const maxMessage = 1000

// Coded returns an error with a code and hints.
func Coded(code protocol.Code, message string, hints ...string) error {
	return &protocol.Error{Code: code, Message: message, Hints: hints}
}

// NotFound returns an error for an object on the command line that doesn't exist.
func NotFound(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// Invalid returns an error for a file or value with invalid content.
func Invalid(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: message, Hints: hints}
}

// Report prints an error with its hints, either as text or as one JSON object. Errors quote files and agents,
// so their text is escaped even outside a terminal, because people view logs in terminals. All lines of the message except the first are indented, so that quoted text
// can't pass for a hint.
func Report(w io.Writer, program string, e *protocol.Error, asJSON bool) {
	known := hints.All("", e)
	if !asJSON {
		fmt.Fprintf(w, "%s: %s\n", program, plaintext.Indent(plaintext.Escape(strings.TrimRight(e.Message, "\r\n"))))
		for _, h := range known {
			fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
		}
		return
	}
	type body struct {
		Code    protocol.Code `json:"code"`
		Message string        `json:"message"`
		Hint    string        `json:"hint,omitempty"`
		// Machine means that another machine can succeed ([protocol.OfMachine]).
		Machine bool `json:"machine,omitempty"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // hints contain <thread>
	// Encoding strings can't fail, and a write error has nowhere to go.
	_ = enc.Encode(map[string]body{"error": {e.Code, e.Message, strings.Join(known, "\n"), protocol.OfMachine(e)}})
}

// DidYouMean returns a hint with the word that was probably meant, preceded by before; nil if no word is
// similar.
func DidYouMean(before, word string, known []string) []string {
	near := suggest.Nearest(word, known, 1)
	if len(near) == 0 {
		return nil
	}
	return []string{"did you mean " + before + plaintext.Word(near[0]) + "?"}
}

// Choices returns hints for an unknown word: the word that was probably meant, and all choices.
func Choices(before, word string, known []string) []string {
	return append(DidYouMean(before, word, known), "one of "+strings.Join(known, ", "))
}

// NoFile returns the error for a file on the command line that doesn't exist.
func NoFile(dir, path string, hints ...string) error {
	if near := suggest.File(dir, path); near != "" {
		hints = append([]string{"did you mean " + plaintext.Word(near) + "?"}, hints...)
	}
	return NotFound("file not found: "+path, hints...)
}

// Version returns the version that "go install" recorded in the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Format returns the output format: the requested one, or else text on a terminal and JSON otherwise.
func Format(asked string, stdout any) render.Format {
	if f, err := render.ParseFormat(asked); err == nil {
		return f
	}
	if terminal.Is(stdout) {
		return render.Text
	}
	return render.JSON
}

// CheckFormat returns an error for an unknown format. An empty format is valid.
func CheckFormat(asked string) error {
	if asked == "" {
		return nil
	}
	if _, err := render.ParseFormat(asked); err != nil {
		return UsageError(err.Error())
	}
	return nil
}

// Colours reports whether output to a stream can be colored: a terminal that isn't dumb, unless NO_COLOR is
// set or CLICOLOR is 0; any stream if CLICOLOR_FORCE is set and isn't 0. NO_COLOR takes precedence.
func Colours(e env.Env, stream any) bool {
	force := e.Get("CLICOLOR_FORCE")
	switch {
	case e.Get("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal.Is(stream) && e.Get("CLICOLOR") != "0" && e.Get("TERM") != "dumb"
}
