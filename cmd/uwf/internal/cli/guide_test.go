package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/util/cmdline"
)

// inline matches command lines in running text.
var inline = regexp.MustCompile("`(uwf [a-z][^`]*)`")

// TestGuidesAreTrue checks that each command line in the texts of uwf guide, and in the page
// about threads, exists, flags included.
func TestGuidesAreTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/run-threads.md")
	require.NoError(t, err)
	lines := 0
	for _, text := range append(guide.All(), guide.Text{Markdown: string(page)}) {
		for _, line := range strings.Split(text.Markdown, "\n") {
			commands := []string{line}
			if !strings.HasPrefix(line, "uwf ") {
				commands = nil
				for _, m := range inline.FindAllStringSubmatch(line, -1) {
					commands = append(commands, strings.Split(m[1], " && ")...)
				}
			}
			for _, line := range commands {
				for command := range strings.SplitSeq(line, " && ") {
					lines++
					checkCommand(t, command)
				}
			}
		}
	}
	require.Greater(t, lines, 40)
}

func checkCommand(t *testing.T, line string) {
	t.Helper()
	text, _, _ := strings.Cut(line, "   #")
	text, _, _ = strings.Cut(text, "  #")
	a := commands{&app.App{}}
	root := a.root()
	text = strings.ReplaceAll(text, "--format json", "") // a global flag, which would come first
	args, err := cmdline.Reorder(root, shellWords(text)[1:])
	require.NoError(t, err, line)
	find(t, root.Commands, args)
}

// shellWords splits a line at spaces outside single quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
