package tools

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// odd is a tree with everything on which search programs disagree.
var odd = map[string]string{
	"crlf.txt": "one\r\nfoo bar 2024-01-31\r\n\r\nend\r\n", "latin.txt": "caf\xe9 foo\nna\xefve\n", "utf8.txt": "café foo\nK \u212a s \u017f\n",
	"deep/a/b/c/x.go": "func Foo_12() {}\n\tfoo := bar\n", "deep/.gitignore": "*.tmp\n!keep.tmp\n", "deep/no.tmp": "foo\n", "deep/keep.tmp": "foo\n",
	".gitignore": "/build/\n*.o\n", "build/x": "foo\n", "a.o": "foo\n", ".hidden": "foo\n", "noend": "first\nfoo", "empty": "", "nl": "\n\n",
	"late": strings.Repeat("x\n", 5000) + "foo\x00\n", "bin": "foo\x00\n", "with space": "FOO\n", "node_modules/m.js": "foo\n", "sub/.git": "foo\n",
}

var oddPatterns = []string{
	"foo", "(?i)foo", "fo+", "foo|bar", "^foo", "foo$", "^$", `\bfoo\b`, `\d{4}-\d{2}`, "caf.", "caf[é]", "caf[^a-z]", "é", "(?i)k", "(?i)S", `\w+_\d+`, ".", "x",
	`^\s+\w+`, "[^f]oo", "end$", "nowhere", `(?i)ſ`, `\pL{4}`, "na.ve", "o(o|x) ?", `[[:upper:]]{2}`, `\x{e9}`, "-", `\Bo`, `(foo|FOO)$`,
}

// The result does not depend on the installed programs.
func TestGrepFindsTheSameEveryWay(t *testing.T) {
	t.Parallel()
	plain, _ := searching(t, odd)
	repo, _ := searching(t, odd)
	git(t, repo.Dir(), "init", "-q")
	git(t, repo.Dir(), "add", "crlf.txt", "deep/a")
	for _, expr := range oddPatterns {
		want := reference(t, plain, expr)
		for name, w := range map[string]*Workspace{"alone": plain, "in a repository": repo} {
			text, err := w.grep(t.Context(), grepArgs{Pattern: expr, Limit: 1000})
			require.NoError(t, err)
			if strings.HasPrefix(text, "No match.") {
				text = ""
			}
			text, _, _ = strings.Cut(text, "[1000 of ")
			require.Equal(t, want, text, "%s: %s", name, expr)
		}
	}
}

// reference searches line by line.
func reference(t *testing.T, w *Workspace, expr string) string {
	t.Helper()
	re := regexp.MustCompile(expr)
	var b strings.Builder
	shown := 0
	for _, name := range slices.Sorted(maps.Keys(odd)) {
		switch name {
		case "build/x", "a.o", "deep/no.tmp", "bin", "node_modules/m.js", "sub/.git":
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.Dir(), name))
		require.NoError(t, err)
		number := 0
		for line := range bytes.Lines(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))) {
			number++
			line = bytes.TrimSuffix(line, []byte("\n"))
			if re.Match(line) && shown < 1000 {
				shown++
				fmt.Fprintf(&b, "%s:%d: %s\n", name, number, asText(string(line)))
			}
		}
	}
	return b.String()
}

// A line is found if and only if package regexp matches it.
func FuzzNext(f *testing.F) {
	for _, expr := range oddPatterns {
		f.Add(expr, "foo\n\ncafé 2024-01 K\nna\xefve end\nFOO bar")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		p, err := parsePattern(expr, false)
		if err != nil {
			return
		}
		var got, want []string
		b := []byte(text)
		for start, end, ok := p.next(b, 0); ok; start, end, ok = p.next(b, end+1) {
			got = append(got, text[start:end])
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); p.re.MatchString(line) {
				want = append(want, line)
			}
		}
		require.Equal(t, want, got, "%q", expr)
		if want != nil {
			require.True(t, p.worth(b))
		}
	})
}
