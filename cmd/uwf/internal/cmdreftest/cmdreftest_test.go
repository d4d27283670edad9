package cmdreftest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cmdreftest"
)

func TestMarkdown(t *testing.T) {
	t.Parallel()
	text := cmdreftest.Markdown(&ucli.App{
		Name:  "prog",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "home", Usage: "`DIR` of all"}},
		Commands: []*ucli.Command{
			{Name: "do", Aliases: []string{"make"}, ArgsUsage: "<it>", Usage: "do it",
				Description: "With <care>.\n\n   prog do x",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "`N` times", Value: "1"},
					&ucli.BoolFlag{Name: "fast", Usage: "a | b"},
				}},
			{Name: "group", Usage: "things", Subcommands: []*ucli.Command{{Name: "one", Usage: "first"}, {Name: "secret", Hidden: true}}},
		},
	})
	require.Contains(t, text, "| `--home DIR` | DIR of all |\n")
	require.Contains(t, text, "\n### prog do\n\n```\nprog do <it> [flags]\n```\n\nDo it.\n\nAlso: `make`.\n\nWith \\<care>.\n\n```\nprog do x\n```\n")
	require.Contains(t, text, "| `--count N`, `-c` | N times (default: 1) |\n")
	require.Contains(t, text, "| `--fast` | a \\| b |\n")
	require.Contains(t, text, "\n## prog group\n\nThings.\n\n### prog group one\n")
	require.NotContains(t, text, "secret")
}
