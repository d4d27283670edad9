package cliagent

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// refusalWords are how programs say that the system has refused them a file.
var refusalWords = lazyregexp.New(`(?i)\b(EACCES|EPERM|EROFS)\b|permission denied|operation not permitted|read-only file system|\b(os error|errno):? (1|13|30)\b`)

// refusals is the first line of a program's stderr that says so; it is an
// [io.Writer], safe for concurrent use.
type refusals struct {
	mu       sync.Mutex
	rest     []byte
	line     string
	harmless []string // words of lines that do not count
}

// maxRefusal bounds a line that is told, in bytes.
const maxRefusal = 300

// Write implements io.Writer.
func (f *refusals) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range bytes.Lines(b) {
		if f.line != "" {
			break
		}
		if room := 4*maxRefusal - len(f.rest); room > 0 {
			f.rest = append(f.rest, line[:min(room, len(line))]...)
		}
		if line[len(line)-1] == '\n' {
			f.line, f.rest = f.in(string(f.rest)), f.rest[:0]
		}
	}
	return len(b), nil
}

// found is the line; "" if there was none.
func (f *refusals) found() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.line == "" {
		return f.in(string(f.rest))
	}
	return f.line
}

// in is the first line of a text that reports a refused file that matters; "": none does.
func (f *refusals) in(text string) string {
	said := refusalWords()
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(plaintext.Strip(line)); said.MatchString(line) &&
			!slices.ContainsFunc(f.harmless, func(words string) bool { return strings.Contains(line, words) }) {
			if len(line) > maxRefusal {
				line = strings.ToValidUTF8(line[:maxRefusal], "") + "…"
			}
			return line
		}
	}
	return ""
}

// refusal is a part of the detail: what a confined program said it was refused, whatever the
// outcome.
func (r *runner) refusal(out tried) []string {
	if r.confinement == nil {
		return nil
	}
	if line := r.refused.found(); line != "" {
		return []string{"it said: " + line}
	}
	if line := r.refused.in(out.Message); line != "" && out.Kind != OK {
		return []string{"it said: " + line}
	}
	return nil
}

// heldHints say what to do about a confined program that failed, perhaps because of its
// confinement.
func (r *runner) heldHints(out tried) []string {
	if r.confinement == nil {
		return nil
	}
	said := r.refusal(out)
	switch {
	case slices.Contains([]errorkind.Kind{errorkind.RateLimit, errorkind.Quota, errorkind.Server, errorkind.Context, errorkind.BadRequest}, out.Error):
		return nil // its model's endpoint is the reason
	case len(said) > 0:
		path := pathIn(said[0])
		if !r.sandbox.SharesMemory() && (strings.HasPrefix(path, confine.SharedMemory) || strings.Contains(said[0], "hared memory") || strings.Contains(said[0], "SemLock")) {
			return []string{r.adapter.Program + " runs confined and shares no memory with other programs. If it needs that: uwf config set " + r.key("sandbox.sharedMemory") + " true"}
		}
		if path == "" {
			path = "…"
		}
		return []string{
			r.adapter.Program + " runs confined and cannot write everywhere. If it needs that file: uwf config set " + r.key("sandbox.allowWrite") + " '[\"" + path + "\"]'",
			"uwf config set " + r.key("sandbox.mode") + " none lets it write anywhere",
		}
	case !out.worked && (out.Kind == Incomplete || out.Kind == Timeout || out.Error == Crashed || out.Error == errorkind.Unknown):
		hints := []string{r.adapter.Program + " runs confined. If it works without that, uwf config set " + r.key("sandbox.mode") + " none"}
		if r.confinement.box != nil {
			hints = append(hints, r.seesMore())
		}
		return hints
	}
	return nil
}

// seesMore says how a program in namespaces gets to see more.
func (r *runner) seesMore() string {
	return "of your home directory it sees plain names, tools, and what is its own. If it needs more: uwf config set " + r.key("sandbox.allowRead") + " '[\"…\"]'"
}

// pathIn is the last path that a message names, since shells name their script first; "" if
// there is none.
func pathIn(message string) string {
	paths := regexp.MustCompile(`(^|[\s'"\x60:=(<])(/[^\s'"\x60:,;()<>]+)`).FindAllStringSubmatch(message, -1)
	if len(paths) == 0 {
		return ""
	}
	return filepath.Clean(strings.TrimRight(paths[len(paths)-1][2], "."))
}
