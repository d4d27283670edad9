package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits for assertions that compare prose of the program; lower them when the numbers fall. In a new test,
// record the sentence with package prosetest, and assert codes and data.
const (
	maxProseInGo      = 1174 // about 50 are names of laws and scenarios of internal/decide
	maxProseInStories = 55
)

// TestProseIsInGoldenFiles counts the assertions, outside golden files, that break when the program is
// reworded. In Go, that is a string in a test with three consecutive words that also occur in a string of the
// program. In a story, it is a pattern for stdout, stderr or grep with two such words, unless the story's own
// files or commands contain them.
func TestProseIsInGoldenFiles(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	var program strings.Builder // its strings of at least three words
	var tests []string
	for _, name := range files {
		if path.Ext(name) != ".go" || isThirdParty(name) || inTestdata(name) {
			continue
		}
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, name)
			continue
		}
		if strings.HasSuffix(path.Dir(name), "test") { // a test kit is not the program
			continue
		}
		for _, text := range literals(t, filepath.Join(root, name)) {
			if len(strings.Fields(text)) > 2 {
				program.WriteString(text + "\x00")
			}
		}
	}
	p := prose{all: program.String(), runs: regexp.MustCompile(`[A-Za-z][a-z'’]*([,;:.]? [A-Za-z][a-z'’]*)+`)}
	var inGo, inStories int
	for _, name := range tests {
		n := 0
		for _, text := range literals(t, filepath.Join(root, name)) {
			if p.shares(text, 3, "") {
				n++
			}
		}
		inGo += n
		t.Logf("%4d %s", n, name)
	}
	for _, name := range files {
		if strings.Contains(name, "testdata/script/") {
			n := p.inStory(read(t, root, name))
			inStories += n
			t.Logf("%4d %s", n, name)
		}
	}
	require.NotZero(t, inGo)
	require.LessOrEqual(t, inGo, maxProseInGo, "prose in Go tests: see util/prosetest")
	require.LessOrEqual(t, inStories, maxProseInStories, "prose in stories: say prose stderr, and code not_found")
}

// prose contains the strings of the program.
type prose struct {
	all  string
	runs *regexp.Regexp
}

// shares reports whether a number of consecutive words of a text occur in the program, and not in other.
func (p prose) shares(text string, words int, other string) bool {
	for _, run := range p.runs.FindAllString(text, -1) {
		list := strings.Fields(run)
		for i := 0; i+words <= len(list); i++ {
			some := strings.Join(list[i:i+words], " ")
			if strings.Contains(p.all, some) && (other == "" || !strings.Contains(other, some)) {
				return true
			}
		}
	}
	return false
}

// inStory counts the patterns in a story that are prose.
func (p prose) inStory(story string) (n int) {
	match := regexp.MustCompile(`^(\[.*\] )?(! )?(stdout|stderr|grep) +(.*)`)
	command := regexp.MustCompile(`\b(uwf|ocas|git|chmod)( [a-z-]+)+`) // a hint is data
	var patterns []string
	var own strings.Builder
	files := false
	for line := range strings.Lines(story) {
		files = files || strings.HasPrefix(line, "-- ")
		if found := match.FindStringSubmatch(line); found != nil && !files {
			patterns = append(patterns, command.ReplaceAllString(found[4], "|"))
		} else if !strings.HasPrefix(line, "#") {
			own.WriteString(line)
		}
	}
	for _, pattern := range patterns {
		if p.shares(pattern, 2, own.String()) {
			n++
		}
	}
	return n
}

// literals returns the strings in a Go file, without the messages of assertions.
func literals(t *testing.T, name string) (texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	require.NoError(t, err)
	said := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if said[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			for _, arg := range n.Args[compared(n):] {
				said[arg] = true
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				require.NoError(t, err)
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

// compared returns how many arguments of a test's call are compared; the others are failure messages.
func compared(call *ast.CallExpr) int {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return len(call.Args)
	}
	switch of, _ := f.X.(*ast.Ident); {
	case of == nil:
		return len(call.Args)
	case of.Name == "t" || of.Name == "prosetest":
		return 0
	case of.Name != "require" && of.Name != "assert":
		return len(call.Args)
	}
	switch f.Sel.Name {
	case "NoError", "Error", "Empty", "NotEmpty", "True", "False", "Zero", "NotZero", "Nil", "NotNil", "FileExists", "NoFileExists":
		return min(2, len(call.Args))
	}
	return min(3, len(call.Args))
}
