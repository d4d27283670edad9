package hints

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestFill(t *testing.T) {
	t.Parallel()
	facts := protocol.Why("r", "thread", "T1", "dir", "a b", "gone", "", "limit", "cost", "again", "answer").Data
	for line, want := range map[string]string{
		"uwf thread show {thread}": "uwf thread show T1", "cd {dir}": "cd 'a b'", "in {=dir}": "in a b",
		`not {"dir}`: `not "a b"`, "{?dir}x": "x", "{?gone}x": "", "{!gone}x": "x", "{!dir}x": "", "{gone}": "", "{=gone}": "",
		"{?limit=cost}x": "x", "{?limit=time}x": "", "uwf thread step {thread}{remote}": "uwf thread step T1 --remote 'my team'",
		"then: {again}": "then: uwf thread resume T1 --remote 'my team' -p '<answer>'",
	} {
		got, ok := filler{facts, "my team"}.fill(line)
		require.Equal(t, want, got, line)
		require.Equal(t, want != "", ok, line)
	}
	got, _ := filler{facts, ""}.fill("uwf thread step {thread}{remote}")
	require.Equal(t, "uwf thread step T1", got)
}

func TestAll(t *testing.T) {
	t.Parallel()
	e := (&protocol.Error{Hints: []string{"own"}}).Because("moved", "thread", "T1").Because("stopped", "thread", "T1",
		"again", "answer")
	require.Equal(t, []string{"own", "uwf thread show T1", "to continue: uwf thread resume T1 -p '<answer>'"}, All("", e))
}

func TestCommand(t *testing.T) {
	t.Parallel()
	require.Equal(t, "uwf thread resume T1 --remote team -p 'a b'", Command("team", "thread", "resume", "T1", "-p", "a b"))
	require.Equal(t, "uwf thread read T1", Command("team", "thread", "read", "T1"))
	require.Equal(t, "uwf thread step T1", Command("", "thread", "step", "T1"))
}

func TestAgain(t *testing.T) {
	t.Parallel()
	for _, again := range []string{protocol.AgainStep, protocol.AgainResume, protocol.AgainRaise, protocol.AgainAnswer,
		protocol.AgainForm, protocol.AgainRetry} {
		require.Len(t, lines("again "+again), 1, again)
	}
	require.Equal(t, 6, strings.Count(table, "\nagain "))
}

// TestTable compares the table with the engine's sources: each reason has hints, each entry a reason, and
// each placeholder a fact of its reason.
func TestTable(t *testing.T) {
	t.Parallel()
	given := reasons(t, "../../engine", "../../cas", "../../remote", "../../moderator")
	known := map[string][]string{}
	for line := range strings.Lines(table) {
		if name := strings.TrimSuffix(line, "\n"); name != "" && !strings.ContainsAny(name[:1], "\t#") &&
			!strings.HasPrefix(name, "again ") {
			require.NotContains(t, known, name)
			known[name] = lines(name)
			require.NotEmpty(t, known[name])
		}
	}
	for name := range given {
		require.NotEmpty(t, known[name], "no hints for %s", name)
	}
	braces := regexp.MustCompile(`\{[?!="]?([a-z0-9-]+)(=[a-z]+)?\}`)
	for name, lines := range known {
		require.NotNil(t, given[name], "nothing gives the reason %s", name)
		for _, line := range lines {
			for _, key := range braces.FindAllStringSubmatch(line, -1) {
				if facts := given[name]; key[1] != "remote" && name+" "+key[1] != "names-path near" && !facts["…"] {
					require.True(t, facts[key[1]], "%s has no fact %s for: %s", name, key[1], line)
				}
			}
			require.Equal(t, strings.Count(line, "{"), len(braces.FindAllString(line, -1)), line)
		}
	}
}

// reasons returns the reasons in the sources below directories, with the keys of their facts; "…" means
// others as well.
func reasons(t *testing.T, roots ...string) map[string]map[string]bool {
	t.Helper()
	found, words := map[string]map[string]bool{}, map[string]string{}
	var calls []*ast.CallExpr
	look := func(path string, d fs.DirEntry, err error) error {
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
				if len(n.Values) == 1 {
					words[n.Names[0].Name] = text(n.Values[0])
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Because" || f.Sel.Name == "Why" ||
					f.Sel.Name == "hint") {
					calls = append(calls, n)
				}
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "unclear" { // of package names
					calls = append(calls, n)
				}
			}
			return true
		})
		return nil
	}
	for _, root := range roots {
		require.NoError(t, filepath.WalkDir(root, look))
	}
	for _, call := range calls {
		name := text(call.Args[0])
		if id, ok := call.Args[0].(*ast.Ident); ok {
			name = words[id.Name]
		}
		if name == "" { // passed on
			continue
		}
		if found[name] == nil {
			found[name] = map[string]bool{}
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "hint" { // of a diagnosis
			found[name]["thread"] = true
		}
		for i, arg := range call.Args[1:] {
			if key := text(arg); key != "" && i%2 == 0 {
				found[name][key] = true
			}
		}
		if call.Ellipsis.IsValid() {
			found[name]["…"] = true
		}
	}
	require.Greater(t, len(found), 100)
	return found
}

// text returns the value of a string literal.
func text(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}
