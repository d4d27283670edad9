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
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programs"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// ofTheOriginal lists command lines of the TypeScript uwf that uwf doesn't have. migrate-from-typescript.md
// shows their replacements.
var ofTheOriginal = []string{"doctor --unattended", "step ask <step> -p q", "eval"}

// TestDocsAreTrue checks that every command line in README, docs and examples is valid: its command exists,
// and so do its flags.
func TestDocsAreTrue(t *testing.T) {
	t.Parallel()
	lines := 0
	for file, text := range pages(t) {
		for _, line := range commandLines(text) {
			if lines++; slices.Contains(ofTheOriginal, strings.Join(line, " ")) {
				continue
			}
			a := commands{&app.App{}}
			args, err := cmdline.Reorder(a.root(), line)
			if !assert.NoError(t, err, "%s: uwf %s", file, strings.Join(line, " ")) || args[0] == "help" {
				continue
			}
			commands := a.root().Commands
			find(t, commands, fromCommand(commands, args))
		}
	}
	require.Greater(t, lines, 200)
}

// TestAdaptersAreKnown checks that each adapter has a program, a row in docs/agents/README.md, and an entry
// for the program it drives, and that the list is complete.
func TestAdaptersAreKnown(t *testing.T) {
	t.Parallel()
	const root = "../../../../"
	page := pages(t)[root+"docs/agents/README.md"]
	for _, a := range protocol.Adapters() {
		assert.FileExists(t, root+"cmd/"+a.Name+"/main.go")
		assert.Contains(t, page, "| `"+a.Name, "docs/agents/README.md")
		_, known := programs.Places([]string{a.Program})
		assert.True(t, known || a.Program == "", "%s drives %s: say in util/programs/programs.go what is its own", a.Name, a.Program)
	}
	mains, err := filepath.Glob(root + "cmd/*/main.go")
	require.NoError(t, err)
	for _, path := range mains {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name := filepath.Base(filepath.Dir(path))
		_, listed := protocol.AdapterOf(name)
		assert.True(t, listed || !strings.Contains(string(text), `utilagent/cliagent"`), "%s: name it in protocol/ownagents.go", name)
	}
}

// ownTest lists pages whose YAML a test of moderator/workflow checks: they show parts of workflows, or
// workflows that run others.
var ownTest = []string{"workflow-file.md", "parallel-roles.md"}

// TestYAMLIsValid checks that every YAML block in README and docs is a workflow, a part of config.yaml, a
// script of uwf-mock, or a GitHub workflow whose commands exist.
func TestYAMLIsValid(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	checked := 0
	for file, text := range pages(t) {
		if slices.Contains(ownTest, filepath.Base(file)) {
			continue
		}
		for _, block := range blocks.FindAllStringSubmatch(text, -1) {
			checked++
			assert.NoError(t, validYAML(t, []byte(block[1])), "%s shows\n%s", file, block[1])
		}
	}
	require.Greater(t, checked, 15)
}

func validYAML(t *testing.T, text []byte) error {
	t.Helper()
	doc, err := yamldoc.Parse(text, yamldoc.Bounds{Bytes: 1 << 20})
	if err != nil {
		return err
	}
	switch {
	case doc.Root.Get("graph") != nil:
		_, err = workflow.Parse(workflow.Source{Data: text})
	case doc.Root.Get("steps") != nil, doc.Root.Get("roles") != nil:
		_, err = mock.Parse("script", text)
	case doc.Root.Get("jobs") != nil:
		for _, line := range commandLines("```\n" + regexp.MustCompile(`(?m)^ *(- )?run: `).ReplaceAllString(string(text), "") + "```\n") {
			a := commands{&app.App{}}
			if _, err := cmdline.Reorder(a.root(), line); err != nil {
				return err
			}
		}
	default:
		_, err = config.ParseUnfinished(text, "config.yaml", env.Env{})
	}
	return err
}

// pages returns the texts for users: README, docs, examples and their comments.
func pages(t *testing.T) map[string]string {
	t.Helper()
	const root = "../../../../"
	texts := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/agents/*.md", "examples/*.md", "examples/*.yaml"} {
		files, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			text := strings.ReplaceAll(string(data), "\r\n", "\n")
			if filepath.Ext(file) == ".yaml" { // only its comments
				text = "```\n" + strings.ReplaceAll(text, "#   uwf ", "uwf ") + "```\n"
			}
			texts[file] = text
		}
	}
	return texts
}

var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// commandLines returns the uwf commands of a page, in its code blocks and in running text, as words, without
// anything after a pipe or a comment sign.
func commandLines(page string) [][]string {
	var out [][]string
	inside, shell := false, false // inside a block; inside one with command lines
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if language, fence := strings.CutPrefix(line, "```"); fence {
			inside = !inside
			shell = inside && slices.Contains([]string{"", "sh", "console", "bash"}, language)
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "$ "), "uwf ")
		if !inside {
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				out = append(out, commandWords(strings.TrimPrefix(m[1], "uwf ")))
			}
		}
		if !shell || !ok {
			continue
		}
		if line := commandWords(rest); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// commandWords returns the words of a command line, up to a comment or a pipe to another program.
func commandWords(line string) []string {
	words := strings.Fields(quoted.ReplaceAllString(line, "quoted"))
	end := slices.IndexFunc(words, func(w string) bool {
		return strings.HasPrefix(w, "#") || strings.ContainsAny(w, "|;&>") && !strings.HasPrefix(w, "<")
	})
	if end >= 0 {
		words = words[:end]
	}
	return words
}

// fromCommand returns a command line without the global flags before its first command.
func fromCommand(commands []*ucli.Command, args []string) []string {
	for i, arg := range args {
		if slices.ContainsFunc(commands, func(c *ucli.Command) bool { return c.HasName(arg) }) {
			return args[i:]
		}
	}
	return args
}
