// Package hints returns the next command to suggest, by the engine's reason for an error or for the state of
// a thread; see table.txt.
package hints

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Of returns the hints for reasons, in order. remote is the remote of the command and its hints, or "".
func Of(remote string, reasons ...protocol.Reason) []string {
	var hints []string
	for _, r := range reasons {
		for _, line := range lines(r.Name) {
			if hint, ok := (filler{r.Data, remote}).fill(line); ok {
				hints = append(hints, hint)
			}
		}
	}
	return hints
}

//go:embed table.txt
var table string

// lines returns the lines after a name in the table.
func lines(name string) []string {
	_, rest, _ := strings.Cut(table, "\n"+name+"\n")
	var found []string
	for line := range strings.Lines(rest) {
		hint, ok := strings.CutPrefix(line, "\t")
		if !ok {
			break
		}
		found = append(found, strings.TrimSuffix(hint, "\n"))
	}
	return found
}

// All returns the hints of an error: its own, and those for its reasons.
func All(remote string, e *protocol.Error) []string {
	return slices.Concat(e.Hints, Of(remote, e.Reasons...))
}

// Command returns a command line of uwf. A command that runs steps runs them at the remote.
func Command(remote string, args ...string) string {
	line := "uwf"
	for i, arg := range args {
		line += " " + plaintext.Word(arg)
		if i == 2 && remote != "" && args[0] == "thread" && slices.Contains([]string{"step", "resume", "answer", "retry"},
			args[1]) {
			line += " --remote " + plaintext.Word(remote)
		}
	}
	return line
}

// filler inserts facts into lines of the table.
type filler struct {
	data   map[string]string
	remote string
}

// fill replaces the placeholders in a line; ok reports whether the line applies.
//
//	{key}         the fact, quoted for a shell; a line without this fact doesn't apply
//	{=key}        the fact, verbatim
//	{"key}        the fact, in quotes
//	{?key}        nothing; the line applies only if the fact exists
//	{?key=value}  nothing; the line applies only if the fact has this value
//	{!key}        nothing; the line applies only if the fact doesn't exist
//	{again}       the command described by the fact "again"
//	{remote}      the option for the remote, if any
func (f filler) fill(line string) (text string, ok bool) {
	for {
		before, rest, found := strings.Cut(line, "{")
		text += before
		if !found {
			return text, true
		}
		key, after, _ := strings.Cut(rest, "}")
		value, ok := f.value(key)
		if !ok {
			return "", false
		}
		text, line = text+value, after
	}
}

func (f filler) value(key string) (text string, ok bool) {
	switch name := key[1:]; key[0] {
	case '=':
		text, ok = f.data[name]
		return text, ok
	case '"':
		text, ok = f.data[name]
		return strconv.Quote(text), ok
	case '?':
		name, want, exact := strings.Cut(name, "=")
		text, ok = f.data[name]
		return "", ok && (!exact || text == want)
	case '!':
		_, ok = f.data[name]
		return "", !ok
	}
	text, ok = f.data[key]
	switch {
	case key == "remote" && f.remote != "":
		return " --remote " + plaintext.Word(f.remote), true
	case key == "remote":
		return "", true
	case key == "again" && ok:
		return f.fill(strings.Join(lines("again "+text), ""))
	}
	return plaintext.Word(text), ok
}
