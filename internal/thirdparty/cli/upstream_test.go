package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	upstream "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/internal/thirdparty/cli"
)

func TestSameAsUpstream(t *testing.T) {
	t.Parallel()
	line := []string{"program", "--name", "a", "sub", "-n", "3", "--", "-x"}
	var got, want []any
	ours := cli.App{Flags: []cli.Flag{&cli.StringFlag{Name: "name"}}, Commands: []*cli.Command{{
		Name: "sub", Flags: []cli.Flag{&cli.IntFlag{Name: "number", Aliases: []string{"n"}}},
		Action: func(c *cli.Context) error {
			got = []any{c.String("name"), c.Int("number"), c.Args().Slice()}
			return nil
		},
	}}}
	theirs := upstream.App{Flags: []upstream.Flag{&upstream.StringFlag{Name: "name"}}, Commands: []*upstream.Command{{
		Name: "sub", Flags: []upstream.Flag{&upstream.IntFlag{Name: "number", Aliases: []string{"n"}}},
		Action: func(c *upstream.Context) error {
			want = []any{c.String("name"), c.Int("number"), c.Args().Slice()}
			return nil
		},
	}}}
	require.NoError(t, ours.Run(line))
	require.NoError(t, theirs.Run(line))
	require.Equal(t, []any{"a", 3, []string{"-x"}}, got)
	require.Equal(t, want, got)
}

// TestCopy holds the copy to the original: its files are those of the module that go.mod requires, with
// testdata/lean.diff applied, except those left out.
func TestCopy(t *testing.T) {
	t.Parallel()
	found, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/urfave/cli/v2").Output()
	require.NoError(t, err)
	original, dir := strings.TrimSpace(string(found)), t.TempDir()
	for _, name := range sources(t, original) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(read(t, filepath.Join(original, name))), 0o600))
	}
	diff, err := filepath.Abs("testdata/lean.diff")
	require.NoError(t, err)
	apply := exec.CommandContext(t.Context(), "git", "apply", "-p0", diff)
	// Without a ceiling, git would look for a repository above and skip the files.
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, sources(t, dir), sources(t, "."))
	for _, name := range sources(t, ".") {
		require.Equal(t, read(t, filepath.Join(dir, name)), read(t, name), name)
	}
}

// sources returns the licence and the source files of a directory that the copy has.
func sources(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == "docs.go", name == "fish.go", strings.HasSuffix(name, "_test.go"):
		case name == "LICENSE", filepath.Ext(name) == ".go", filepath.Ext(name) == ".s":
			names = append(names, name)
		}
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}
