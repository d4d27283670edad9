package hints

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hintless lists the codes whose errors need no hint, with the reason.
var hintless = map[string]string{
	"Redacted":    "the content was removed on purpose",
	"Limit":       "the status has the reason limit-reached",
	"Suspended":   "the question names the command",
	"Workflow":    "the result of the thread is the reason",
	"Hangup":      "the user ended the command",
	"Interrupted": "the user ended the command",
	"Terminated":  "the user ended the command",
}

// TestCodes checks that the sources give hints with errors of each code, except those in hintless.
func TestCodes(t *testing.T) {
	t.Parallel()
	constant := regexp.MustCompile(`^Code([A-Z]\w*)$`)
	hinted, all := map[string]bool{}, map[string]bool{}
	codes := func(n ast.Node, note func(code string)) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if m := constant.FindStringSubmatch(s.Sel.Name); m != nil {
					note(m[1])
				}
			}
			return true
		})
	}
	mark := func(code string) { hinted[code] = true }
	look := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if m := constant.FindStringSubmatch(n.Names[0].Name); m != nil && file.Name.Name == "protocol" {
					all[m[1]] = true
				}
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				switch {
				case ok && s.Sel.Name == "Because":
					codes(s.X, mark)
				case ok && len(n.Args) > 1 && map[string]bool{"UsageError": true, "NotFound": true, "Invalid": true}[s.Sel.Name]:
					mark(strings.TrimSuffix(s.Sel.Name, "Error"))
				case ok && len(n.Args) > 2 && s.Sel.Name == "Coded":
					codes(n.Args[0], mark)
				}
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && isNamed(kv.Key, "Hints") {
						codes(n, mark)
					}
				}
			}
			return true
		})
		return nil
	}
	for _, root := range []string{"../../protocol", "../../engine", "../../cas", "../../remote", "../../moderator", "../../cmd", ".."} {
		require.NoError(t, filepath.WalkDir(root, look))
	}
	require.Greater(t, len(all), 15)
	for code := range all {
		require.True(t, hinted[code] || hintless[code] != "", "Code%s: neither hints nor a reason in hintless", code)
	}
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// TestPasted checks that each hint with a command ends with it, so that it can be pasted.
func TestPasted(t *testing.T) {
	t.Parallel()
	braces := regexp.MustCompile(`\{[?!][^}]*\}`)
	command := regexp.MustCompile(`^(.*: )?(UWF_HOME=HOME )?uwf [^A-Z:]`)
	for line := range strings.Lines(table) {
		hint, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		hint = braces.ReplaceAllString(hint, "")
		if !ok || !strings.Contains(hint, "uwf ") {
			continue
		}
		require.Regexp(t, command, hint)
		for _, word := range []string{" shows", " gives", " makes", " takes", " finishes", " lets ", " continues", " starts "} {
			require.NotContains(t, hint[strings.Index(hint, "uwf "):], word, hint)
		}
	}
}
