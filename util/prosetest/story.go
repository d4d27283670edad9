package prosetest

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
)

// Script is a *testscript.TestScript.
type Script interface {
	Name() string
	ReadFile(file string) string
	Defer(func())
	Fatalf(format string, args ...any)
}

// StoryProse is the command "prose stdout", "prose stderr" or "prose FILE" of a story: it
// records the text as [Text] does, under TestScripts and the name of the story. What
// stderr has as JSON repeats it for programs, and is not recorded. Where the order of the
// lines is not always the same, "prose stderr PATTERN" records those that match.
func StoryProse[S Script](ts S, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: prose stdout|stderr|file [pattern]")
	}
	lines := strings.Split(read(ts.ReadFile(args[0])), "\n")
	if args[0] == "stderr" {
		lines = slices.DeleteFunc(lines, func(line string) bool { return codeOf(line) != "" })
	}
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
	// Where damage is met depends on how well ids and times were compressed.
	text := regexp.MustCompile(`(\.uwfb is damaged: byte )\d+`).ReplaceAllString(strings.Join(lines, "\n"), "$1<n>")
	record(story{ts}, text, nil)
}

// read is a text, of a page only what a person reads.
func read(text string) string {
	if !strings.HasPrefix(text, "<!doctype html>") {
		return text
	}
	text = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<svg.*?</svg>|<[^>]*>`).ReplaceAllString(text, " ")
	return html.UnescapeString(regexp.MustCompile(`\n\s*\n+`).ReplaceAllString(text, "\n"))
}

// StoryCode is the command "code not_found" of a story: the last command failed with this
// code, which stderr has as JSON if results are JSON.
func StoryCode[S Script](ts S, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: code CODE")
	}
	code := ""
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if found := codeOf(line); found != "" {
			code = found
		}
	}
	if code != args[0] {
		ts.Fatalf("the code is %q", code)
	}
}

// codeOf is the code of a line such as {"error":{"code":"not_found",…}}.
func codeOf(line string) string {
	var failed struct {
		Error struct{ Code string }
	}
	if !strings.HasPrefix(line, `{"error":`) || json.Unmarshal([]byte(line), &failed) != nil {
		return ""
	}
	return failed.Error.Code
}

// story is a script as a test.
type story struct{ Script }

func (s story) Helper()          {}
func (s story) Name() string     { return "TestScripts/" + s.Script.Name() }
func (s story) Cleanup(f func()) { s.Defer(f) }
