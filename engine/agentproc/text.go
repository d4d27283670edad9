package agentproc

import (
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/runfiles"
)

// How much of an agent's stderr is shown.
const (
	tailBytes = 4 << 10
	tailLines = 20
)

// excerptLen is how many characters of a bad line are shown.
const excerptLen = 200

// fullBelow is how little space a disk has that counts as full: what an agent
// says and writes no longer fits.
const fullBelow = 64 << 10

// stderrTail is the end of what an agent said on stderr, "" if nothing. On a
// full disk nothing may be left of that, so then this is said.
func stderrTail(runDir string) string {
	tail := Tail(filepath.Join(runDir, runfiles.StderrFile))
	free, err := durable.FreeSpace(runDir)
	if err != nil || free >= fullBelow {
		return tail
	}
	return strings.TrimPrefix(tail+"\nno space left on the disk of "+runDir, "\n")
}

// Warnings are the lines of the agent's stderr that begin with "warning: ", or with that
// of uwf step put, without it, as far as they are in its end: what a person should know, however the step went.
func (o Outcome) Warnings() []string {
	var found []string
	for line := range strings.Lines(o.Stderr) {
		if text, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "uwf: "), "warning: "); ok {
			found = append(found, text)
		}
	}
	return found
}

// Tail is the end of a file of talk, cleaned; "" if it is empty or cannot be read.
func Tail(path string) string {
	f, err := careful.Open(path, careful.NoFollow)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	tail, err := readTail(f, info.Size(), tailBytes)
	if err != nil {
		return ""
	}
	lines := strings.Split(clean(string(tail)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// excerpt is the beginning of a line, fit to be shown.
func excerpt(line []byte) string {
	line = line[:min(len(line), 4*excerptLen)]
	runes := []rune(clean(string(line)))
	if len(runes) > excerptLen {
		return string(runes[:excerptLen]) + "…"
	}
	return string(runes)
}

// clean makes a stranger's text safe to print.
func clean(s string) string { return strings.TrimSpace(plaintext.Strip(s)) }
