package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/cmdline"
)

// TestDocsAreTrue: every command line in README and docs is one that the program
// takes: its command exists, and so do its flags.
func TestDocsAreTrue(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../docs/*.md")
	require.NoError(t, err)
	lines := 0
	for _, file := range append(files, "../../../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range commandLines(string(text)) {
			lines++
			a := &app{}
			args, err := cmdline.Reorder(a.root(), line)
			if !assert.NoError(t, err, "%s: uwf %s", file, strings.Join(line, " ")) || args[0] == "help" {
				continue
			}
			commands := a.root().Commands
			find(t, commands, fromCommand(commands, args))
		}
	}
	require.Greater(t, lines, 100)
}

var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// commandLines are the uwf commands in the code blocks of a page, as words. What
// follows a pipe or a comment sign is somebody else's.
func commandLines(page string) [][]string {
	var out [][]string
	inside, shell := false, false // a block; one of command lines
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if language, fence := strings.CutPrefix(line, "```"); fence {
			inside = !inside
			shell = inside && slices.Contains([]string{"", "sh", "console", "bash"}, language)
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "$ "), "uwf ")
		if !shell || !ok {
			continue
		}
		words := strings.Fields(quoted.ReplaceAllString(rest, "quoted"))
		end := slices.IndexFunc(words, func(w string) bool {
			return strings.HasPrefix(w, "#") || strings.ContainsAny(w, "|;&>") && !strings.HasPrefix(w, "<")
		})
		if end >= 0 {
			words = words[:end]
		}
		if len(words) > 0 {
			out = append(out, words)
		}
	}
	return out
}

// fromCommand is a command line from its first command on, without the global
// flags before it.
func fromCommand(commands []*ucli.Command, args []string) []string {
	for i, arg := range args {
		if slices.ContainsFunc(commands, func(c *ucli.Command) bool { return c.HasName(arg) }) {
			return args[i:]
		}
	}
	return args
}
