package cmdline

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/united-workforce/uwf/internal/thirdparty/cli"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	app := &cli.App{
		Flags: []cli.Flag{&cli.StringFlag{Name: "home"}, &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}}},
		Commands: []*cli.Command{
			{Name: "thread", Usage: "threads", Subcommands: []*cli.Command{
				{Name: "step", ArgsUsage: "<thread>", Flags: []cli.Flag{&cli.StringFlag{Name: "agent", Usage: "the `NAME`"}, &cli.BoolFlag{Name: "fresh"}}},
				{Name: "secret", Hidden: true},
			}},
			{Name: "put", ArgsUsage: "<name|file…>"},
			{Name: "plain"},
		},
	}
	values := func(what string) []Candidate {
		switch what {
		case "thread", "name":
			return []Candidate{{what + "-a", ""}, {what + "-b", ""}}
		case "--agent":
			return []Candidate{{"builtin", ""}, {"mock", ""}}
		case "file":
			return []Candidate{{Word: Files}}
		}
		return nil
	}
	for name, c := range map[string]struct{ words, want []string }{
		"nothing":                {nil, []string{"thread", "put", "plain"}},
		"a beginning":            {[]string{"p"}, []string{"put", "plain"}},
		"a group":                {[]string{"thread", ""}, []string{"step"}},
		"an argument":            {[]string{"thread", "step", ""}, []string{"thread-a", "thread-b"}},
		"its beginning":          {[]string{"thread", "step", "thread-b"}, []string{"thread-b"}},
		"no second one":          {[]string{"thread", "step", "x", ""}, nil},
		"any number":             {[]string{"put", "x", "y", ""}, []string{"name-a", "name-b", Files}},
		"flags":                  {[]string{"thread", "step", "--"}, []string{"--agent", "--fresh", "--home", "--quiet"}},
		"a flag's value":         {[]string{"thread", "step", "--agent", ""}, []string{"builtin", "mock"}},
		"with =":                 {[]string{"thread", "step", "--agent=m"}, []string{"--agent=mock"}},
		"behind a flag":          {[]string{"--home", "x", "-q", "thread", "step", "--fresh", "--agent", "x", ""}, []string{"thread-a", "thread-b"}},
		"behind --":              {[]string{"thread", "step", "--", ""}, []string{"thread-a", "thread-b"}},
		"a command with nothing": {[]string{"plain", ""}, nil},
		"no such command":        {[]string{"nix", ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, found := range Complete(app, c.words, values) {
				got = append(got, found.Word)
			}
			require.Equal(t, c.want, got)
		})
	}
}
