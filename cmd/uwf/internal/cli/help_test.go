package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/util/cmdline"
)

// Each section of the descriptions belongs to a command, and frequently used commands have examples.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	described := map[string]*ucli.Command{}
	everyCommand(nil, (commands{&app.App{}}).root().Commands, func(words []string, c *ucli.Command, _ int) {
		described[strings.Join(words, " ")] = c
	})
	for line := range strings.Lines(guide.Commands) {
		if words, is := strings.CutPrefix(line, "# "); is {
			assert.Contains(t, described, strings.TrimSpace(words))
		}
	}
	for _, name := range []string{
		"run", "thread start", "thread step", "thread show", "thread list", "thread steps", "thread stop", "thread kill", "thread resume",
		"thread wait", "thread fork", "thread trust", "thread worktrees", "thread seal", "step put", "inbox", "cas gc", "pull", "push",
		"doctor", "workflow new", "workflow validate",
	} {
		if c := described[name]; assert.NotNil(t, c, name) {
			_, examples := cmdline.Description(c.Description, "uwf")
			assert.NotEmpty(t, examples, name)
		}
	}
}

// Help fits 80 columns where the width of the terminal is unknown, and no flag repeats its placeholder.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	root := (commands{&app.App{}}).root()
	fits := func(words []string) {
		var help strings.Builder
		assert.NoError(t, cmdline.Help(&help, root, words))
		for line := range strings.Lines(help.String()) {
			assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), cmdline.Columns, "%v: %s", words, line)
		}
	}
	fits(nil)
	for _, name := range guide.Topics() {
		text, _ := guide.Topic(name)
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, len([]rune(line)), cmdline.Columns+1, "%s: %s", name, line)
		}
	}
	flags := func(words []string, flags []ucli.Flag) {
		for _, f := range flags {
			doc, of := f.(ucli.DocGenerationFlag), fmt.Sprint(words, f.Names())
			if v, is := f.(ucli.VisibleFlag); is && !v.IsVisible() {
				continue
			}
			placeholder, text := cmdline.SplitUsage(doc.GetUsage())
			assert.NotContains(t, text, "`", of)
			if doc.TakesValue() {
				assert.NotEqual(t, "VALUE", placeholder, of)
				assert.Truef(t, strings.HasPrefix(doc.GetUsage(), "`"), "%s begins with its placeholder: %s", of, doc.GetUsage())
				for word := range strings.FieldsSeq(text) {
					assert.NotEqual(t, placeholder, strings.Trim(word, ",.;:()"), of)
				}
			}
		}
	}
	flags(nil, root.Flags)
	everyCommand(nil, root.Commands, func(words []string, c *ucli.Command, _ int) {
		fits(words)
		flags(words, c.Flags)
	})
}
