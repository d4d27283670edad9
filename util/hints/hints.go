// Package hints knows what to type next on the command line of uwf, by the reason that the engine
// gives for an error or for where a thread stands: table.txt.
package hints

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Of returns the hints for reasons, in their order. remote is the remote at which the command
// works, and its hints, too; "": none.
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

// lines are those that follow a name in the table.
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

// Command is a command line of uwf with these arguments; one that makes steps works at the remote.
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

// filler puts facts into the lines of the table.
type filler struct {
	data   map[string]string
	remote string
}

// fill replaces what stands in braces; ok: the line applies.
//
//	{key}         the fact as a word of a shell; a line without it does not apply
//	{=key}        the fact as it is
//	{"key}        the fact in quotes
//	{?key}        nothing: the line applies if there is the fact
//	{?key=value}  nothing: the line applies if the fact is that
//	{!key}        nothing: the line applies if there is no such fact
//	{again}       the command that the fact "again" stands for
//	{remote}      the option that names the remote, if there is one
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
