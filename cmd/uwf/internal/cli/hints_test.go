package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// commandLine matches commands such as "uwf thread step"; following words in capitals, brackets or formats
// are arguments.
var commandLine = regexp.MustCompile(`\buwf ([a-z]+)(?: ([a-z][a-z-]+))?`)

// TestHintsAreTrue checks that messages suggest only existing commands. It reads the string literals of all
// modules.
func TestHintsAreTrue(t *testing.T) {
	t.Parallel()
	commands := (commands{&app.App{}}).root().Commands
	checked := 0
	for _, file := range goFiles(t, "../../../..") {
		for _, text := range literals(t, file) {
			for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
				if isProse(commands, m[1]) {
					continue
				}
				checked++
				require.True(t, exists(commands, m[1], m[2]), "%s: %q", file, m[0])
			}
		}
	}
	require.Greater(t, checked, 20)
}

// isProse distinguishes sentences from command lines, in which the word is a command, or one of the
// original's.
func isProse(commands []*ucli.Command, word string) bool {
	switch word {
	case "config", "setup", "doctor", "log", "prompt", "cas", "skill", "eval":
		return false
	}
	for _, c := range commands {
		if c.HasName(word) {
			return false
		}
	}
	return true
}

func exists(commands []*ucli.Command, name, sub string) bool {
	for _, c := range commands {
		if !c.HasName(name) {
			continue
		}
		if len(c.Subcommands) == 0 || sub == "" {
			return true
		}
		for _, s := range c.Subcommands {
			if s.HasName(sub) {
				return true
			}
		}
	}
	return false
}

func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files = append(files, path)
		return nil
	}))
	return files
}

// literals returns the strings in a file.
func literals(t *testing.T, path string) []string {
	t.Helper()
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, s)
			}
		}
		return true
	})
	return out
}
