package cmdreftest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/util/cmdreftest"
)

func program() *ucli.App {
	return &ucli.App{
		Name: "prog", Usage: "make things",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "home", Usage: "`DIR` directory for everything"}},
		Commands: []*ucli.Command{
			{
				Name: "do", Category: "Common", Aliases: []string{"make"}, ArgsUsage: "<it>", Usage: "do it",
				Description: "With <care>.\n\n   prog do x",
				Flags:       []ucli.Flag{&ucli.StringFlag{Name: "count", Aliases: []string{"c"}, Usage: "`N` number of times (default 1)"}},
			},
			{Name: "group", Category: "Common", Usage: "things", Subcommands: []*ucli.Command{{Name: "one", Usage: "first | last"}, {Name: "secret", Hidden: true}}},
		},
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	pages := cmdreftest.Files(program(), "\n## Topics\n")
	require.Len(t, pages, 3)
	require.Contains(t, pages["README.md"], "| [`prog do`](common.md#prog-do) | Do it. |\n| [`prog group`](group.md#prog-group) | Things. |\n")
	require.Contains(t, pages["README.md"], "      --home DIR  directory for everything\n```\n\n## Topics\n")
	require.Contains(t, pages["common.md"], "\n## prog do\n\nDo it.\n\n```text\nprog do <it> [flags]\n```\n\nAliases: `make`.\n\nWith \\<care>.\n\n"+
		"Flags:\n\n```text\n  -c, --count N  number of times (default 1)\n```\n\nExamples:\n\n```text\nprog do x\n```\n")
	require.Contains(t, pages["group.md"], "| [`prog group one`](#prog-group-one) | First \\| last. |\n\n## prog group one\n\nFirst | last.\n")
	require.NotContains(t, pages["group.md"], "secret")
	require.Contains(t, cmdreftest.Page(program(), "Head.\n"), "# prog\n\nHead.\n\n## Global flags\n")
}

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cli")
	want := map[string]string{"a.md": "a\n"}
	differ, err := cmdreftest.Compare(dir, want, false)
	require.NoError(t, err)
	require.Equal(t, []string{"a.md"}, differ)
	_, err = cmdreftest.Compare(dir, want, true)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.md"), nil, 0o600))
	differ, err = cmdreftest.Compare(dir, want, false)
	require.NoError(t, err)
	require.Equal(t, []string{"b.md is left over"}, differ)
}
