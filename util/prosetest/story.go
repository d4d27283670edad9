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

// StoryProse implements the story command "prose stdout", "prose stderr" or "prose FILE", which records the
// text as [Text] does, under TestScripts and the name of the story. It omits JSON on stderr, which repeats
// the text for programs. If the order of the lines varies, "prose stderr PATTERN" records only the matching
// lines.
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
	// The position of damage depends on how well ids and times compress.
	text := regexp.MustCompile(`(\.uwfb is damaged: byte )\d+`).ReplaceAllString(strings.Join(lines, "\n"), "$1<n>")
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

// codeOf returns the code in a line such as {"error":{"code":"not_found",…}}.
func codeOf(line string) string {
	var failed struct {
		Error struct{ Code string }
	}
	if !strings.HasPrefix(line, `{"error":`) || json.Unmarshal([]byte(line), &failed) != nil {
		return ""
	}
	return failed.Error.Code
}

// story adapts a script to a test.
type story struct{ Script }

func (s story) Helper()          {}
func (s story) Name() string     { return "TestScripts/" + s.Script.Name() }
func (s story) Cleanup(f func()) { s.Defer(f) }
