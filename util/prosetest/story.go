package prosetest

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// Script is a *testscript.TestScript.
type Script interface {
	Name() string
	ReadFile(file string) string
	Defer(func())
	Fatalf(format string, args ...any)
}

// StoryProse implements the story command "prose stdout", "prose stderr" or "prose FILE", which records the
// text as [Text] does, under TestScripts and the name of the story. It records an error that was
// printed as JSON as text. If the order of the lines varies, "prose stderr PATTERN" records only the matching
// lines.
func StoryProse[S Script](ts S, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: prose stdout|stderr|file [pattern]")
	}
	text := read(ts.ReadFile(args[0]))
	if args[0] == "stderr" {
		text, _ = Plain(testedProgram(), text)
	}
	lines := strings.Split(text, "\n")
	if len(args) == 2 {
		pattern, err := regexp.Compile(args[1])
		if err != nil {
			ts.Fatalf("%v", err)
		}
		lines = slices.DeleteFunc(lines, func(line string) bool { return !pattern.MatchString(line) })
		if len(lines) == 0 {
			ts.Fatalf("no line of %s matches %s", args[0], args[1])
		}
	}
	// The position of damage depends on how well ids and times compress.
	text = regexp.MustCompile(`(\.uwfb is damaged: byte )\d+`).ReplaceAllString(strings.Join(lines, "\n"), "$1<n>")
	record(story{ts}, text, nil)
}

// read returns a text; for a web page, only its visible text.
func read(text string) string {
	if !strings.HasPrefix(text, "<!doctype html>") {
		return text
	}
	text = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<svg.*?</svg>|<[^>]*>`).ReplaceAllString(text, " ")
	return html.UnescapeString(regexp.MustCompile(`\n\s*\n+`).ReplaceAllString(text, "\n"))
}

// StoryCode implements the story command "code not_found": the last command failed with this code, according
// to the JSON on stderr.
func StoryCode[S Script](ts S, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: code CODE")
	}
	if _, code := Plain("", ts.ReadFile("stderr")); code != args[0] {
		ts.Fatalf("the code is %q", code)
	}
}

// Plain converts an error that was printed as JSON on stderr to its text form, and returns its code.
func Plain(program, stderr string) (text, code string) {
	lines := strings.Split(stderr, "\n")
	for i, line := range lines {
		var failed struct {
			Error struct{ Code, Message, Hint string }
		}
		at := max(0, strings.Index(line, `{"error":{"code":`)) // a question can precede it
		if json.Unmarshal([]byte(line[at:]), &failed) != nil || failed.Error.Code == "" {
			continue
		}
		e := failed.Error
		code, lines[i] = e.Code, line[:at]+program+": "+plaintext.Indent(plaintext.Escape(strings.TrimRight(e.Message, "\r\n")))
		if e.Hint != "" {
			lines[i] += "\nhint: " + strings.ReplaceAll(e.Hint, "\n", "\nhint: ")
		}
	}
	return strings.Join(lines, "\n"), code
}

// testedProgram returns the name of the program whose test this is.
func testedProgram() string {
	exe, _ := os.Executable()
	return strings.TrimSuffix(filepath.Base(exe), ".test")
}

// story adapts a script to a test.
type story struct{ Script }

func (s story) Helper()          {}
func (s story) Name() string     { return "TestScripts/" + s.Script.Name() }
func (s story) Cleanup(f func()) { s.Defer(f) }
