// Package cmdline is what the command lines of our programs have in common: flags
// before and behind arguments, arguments held against the usage, errors with a
// code and the next command to type, text for people and JSON for programs.
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

// FormatIn finds --format in a command line that could not be parsed, so that
// its error has the right form.
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

// UsageError is an error of the command line.
func UsageError(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeUsage, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// maxMessage bounds a message, which may quote an argument of any length.
const maxMessage = 1000

// Coded is an error with a code, and what to type next.
func Coded(code protocol.Code, message string, hints ...string) error {
	return &protocol.Error{Code: code, Message: message, Hints: hints}
}

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
	known := hints.All("", e)
	for _, h := range known {
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
	_ = enc.Encode(map[string]body{"error": {e.Code, e.Message, strings.Join(known, "\n"), protocol.OfMachine(e)}})
}

// DidYouMean is a hint at the word that was probably meant, with what stands before
// it; none if none is near.
func DidYouMean(before, word string, known []string) []string {
	near := suggest.Nearest(word, known, 1)
	if len(near) == 0 {
		return nil
	}
	return []string{"did you mean " + before + plaintext.Word(near[0]) + "?"}
}

// Choices are the hints about a word that is none of known: what was probably meant, and all.
func Choices(before, word string, known []string) []string {
	return append(DidYouMean(before, word, known), "one of "+strings.Join(known, ", "))
}

// NoFile is the error for a file that is named on the command line and not there.
func NoFile(dir, path string, hints ...string) error {
	if near := suggest.File(dir, path); near != "" {
		hints = append([]string{"did you mean " + plaintext.Word(near) + "?"}, hints...)
	}
	return NotFound("there is no file "+path, hints...)
}

// Version is what "go install" stamped into the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Format is how a result is printed: as asked for, else as text on a terminal and
// as JSON for a program.
func Format(asked string, stdout any) render.Format {
	if f, err := render.ParseFormat(asked); err == nil {
		return f
	}
	if terminal.Is(stdout) {
		return render.Text
	}
	return render.JSON
}

// CheckFormat refuses a format that there is not. None is as good as any.
func CheckFormat(asked string) error {
	if asked == "" {
		return nil
	}
	if _, err := render.ParseFormat(asked); err != nil {
		return UsageError(err.Error())
	}
	return nil
}

// Colours reports whether what goes to a stream may have colours: a terminal that
// is not dumb, unless NO_COLOR is set or CLICOLOR is 0; anything, if CLICOLOR_FORCE
// is set and not 0. NO_COLOR wins.
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
