package prosetest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Limits of a text: longer texts would hide the sentences.
const (
	maxLines = 30
	maxLine  = 500 // bytes
	maxSame  = 40  // repetitions of a character; a table line has fewer
)

// normalizer replaces text that differs between runs or machines.
type normalizer []replacement

type replacement struct {
	pattern *regexp.Regexp
	by      string
}

// newNormalizer returns a normalizer for the directory of the package and its source tree.
func newNormalizer(dir string) normalizer {
	var n normalizer
	add := func(pattern, by string) { n = append(n, replacement{regexp.MustCompile(pattern), by}) }
	add(`(/[\w.-]+)+/script-`, "$$TMP/script-")         // of a story
	add(`(/[\w.-]+)+/go-build\d+/(b\d+/)?`, "$$BUILD/") // of a test binary
	temps := []string{os.TempDir(), "/tmp"}
	if real, err := filepath.EvalSymlinks(os.TempDir()); err == nil {
		temps = append(temps, real)
	}
	slices.SortFunc(temps, func(a, b string) int { return len(b) - len(a) })
	for _, temp := range slices.Compact(temps) {
		add(regexp.QuoteMeta(temp)+`/[\w.-]+(/\d{3}\b)?`, "$$TMP") // of t.TempDir, and others
	}
	add(`(\$TMP){2,}`, "$$TMP")              // a nested directory
	add(`(\$TMP|/usr)?/bin/sh\b`, "/bin/sh") // wherever PATH has it
	add(regexp.QuoteMeta(dir)+`\b`, "$$PACKAGE")
	for root := dir; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			add(regexp.QuoteMeta(root)+`\b`, "$$TREE")
			break
		}
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		add(`(^|[^\w/])`+regexp.QuoteMeta(home)+`\b`, "$1$$HOME")
	}
	// before the ids: the fraction of a second can look like the beginning of one (.0123456Z)
	add(`\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?)?`, "<date>")
	add(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`, "<ulid>")
	add(`\b[0-9A-F][0-9A-HJKMNP-TV-Z]{12}\b`, "<hash>")
	add(`/[0-9A-Z]{2}/<hash>`, "/<dir>/<hash>")
	add(`(\.(?:seg|pack) at byte )[0-9]+`, "${1}<n>")
	add(`(processes killed at the end of the step: )[0-9]+`, "${1}<n>") // one may have ended before it is counted
	add(`\b[0-9a-f]{16,128}\b`, "<hex>")
	add(`(\buwf/[\w-]+-)[0-9a-z]{6}\b`, "$1<id>") // a branch
	add(`( at | branch: |  )[0-9a-f]{7,10}(  |[ \n:,]|$)`, "$1<commit>$2")
	add(`\b01[0-9A-HJKMNP-TV-Z]{7,12}\b`, "<id>") // the beginning of a thread's id
	add(`(fork of |not found: )[0-9A-HJKMNP-TV-Z]{8}\b`, "$1<id>")
	add(`\bjust now\b|\b\d+ ?[a-z]+ ago\b`, "<age>")
	add(`(<age> {2,}|redacted, (\d+ states of the files with \d+ objects, )?)[\d.]+ (B|kB|MB|KiB|MiB|bytes)`, "$1<size>")
	add(`(^|\s)[0-9A-HJKMNP-TV-Z]{8}(  )`, "$1<id>$2") // the end of a thread's id, in a table
	add(`(127\.0\.0\.1|localhost|\[::1\]):\d+`, "$1:<port>")
	add(`\b(pid|process|kill( -[A-Z]+)?) \d+`, "$1 <pid>")
	add(`(^|[\s(])([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?($|[\s,.;)])`, "$1<clock>$4") // not a line and column
	add(`\b(\d+m)?\d+\.\d+ ?(ns|µs|ms|s)\b|\b\d+(ns|µs|ms)\b`, "<time>")
	add(`(\w+Ms"?: ?)\d+`, "$1<time>")
	add(`(\S) {2,}`, "$1  ") // columns depend on the width of variable texts
	add(`\bafter \d+s\b`, "after <time>")
	add(`\n {18}([^ →])`, " $1") // a finding of doctor, wrapped at a width that paths depend on
	add(`(?m)^\w+ +sandbox +(agents and )?commands (are confined by|cannot be confined) .*(\n +→ .*)?`, "<confinement>")
	add(`(\{"area":"sandbox",)"severity":"\w+","what":"(?:agents and )?commands (are confined by|cannot be confined)[^}]*\}`, "$1…}")
	add(`((?:  |: |:").*?)(, in namespaces\b|, without namespaces(; can reach Unix sockets \(docker, tmux\))?)`, "$1<confinement>")
	add(`(?m)^uwf: warning: commands run without namespaces .*\n`, "")
	add(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, "<uuid>")
	return n
}

// apply normalizes a text: it removes what varies, terminal control characters, and bulk.
func (n normalizer) apply(text string) string {
	for _, r := range n {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	lines := strings.Split(shortened(strings.TrimSuffix(text, "\n")), "\n")
	for i, line := range lines {
		if cut := len(line) - maxLine; cut > 0 {
			lines[i] = strings.ToValidUTF8(fmt.Sprintf("%s[%d more bytes]%s", line[:maxLine/2], cut, line[maxLine/2+cut:]), "")
		}
	}
	if more := len(lines) - maxLines; more > 0 {
		lines = slices.Concat(lines[:maxLines/2], []string{fmt.Sprintf("[%d more lines]", more)}, lines[maxLines/2+more:])
	}
	return strings.Join(lines, "\n")
}

// label converts a label to one line.
func (n normalizer) label(text string) string {
	text = strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(text)
	if len(text) > maxLine {
		text = text[:maxLine]
	}
	return strings.TrimSpace(n.apply(text))
}

// shortened limits repetitions of a character or a line, and spells out control characters.
func shortened(text string) string {
	var b strings.Builder
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	for i := 0; i < len(runes); {
		c, end := runes[i], i+1
		for end < len(runes) && runes[end] == c {
			end++
		}
		spelt := string(c)
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			spelt = fmt.Sprintf(`\x%02x`, c)
		}
		if n := end - i; n > maxSame && c != '\n' {
			fmt.Fprintf(&b, "%s[%d times]", spelt, n)
		} else {
			b.WriteString(strings.Repeat(spelt, n))
		}
		i = end
	}
	var lines []string
	all := strings.Split(b.String(), "\n")
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && all[end] == all[i] {
			end++
		}
		if n := end - i; n > 3 {
			lines = append(lines, fmt.Sprintf("%s[%d lines]", all[i], n))
		} else {
			lines = append(lines, all[i:end]...)
		}
		i = end
	}
	return strings.Join(lines, "\n")
}
