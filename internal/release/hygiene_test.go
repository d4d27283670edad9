package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Budgets, in lines: how much code a new maintainer has to read, how wide lines may be, and how large a
// package may be. They may only decrease; maxCore rose once, by 3,900 for the log of nodes (issue 38).
const (
	maxCore    = 136_480
	maxWide    = 800
	maxPackage = 5_500
)

// TestSize checks the budget of the core; make size prints the details.
func TestSize(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	s, err := sizeOf(root, files)
	require.NoError(t, err)
	require.LessOrEqual(t, s.parts["core"], maxCore, "make size says where they are")
	require.LessOrEqual(t, s.wide, maxWide, "lines over %d characters", wideLine)
	for dir, lines := range s.packages {
		require.LessOrEqual(t, lines, maxPackage, "package %s", dir)
	}
	require.Equal(t, []string{"core", "leaf modules", "kits", "instruments", "examples", ""}, []string{
		part("engine/do.go"), part("ext/postgres/pgstore/get.go"), part("cas/castest/suite.go"), part("internal/bench/main.go"),
		part("examples/embed/main.go"), part("engine/do_test.go"),
	})
}

func TestModules(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(".")
	require.NoError(t, err)
	version, err := tree.versionOr("")
	require.NoError(t, err)
	replaced := map[string]string{} // by the directory of the workspace and the module
	for _, dir := range tree.works {
		work, err := tree.workspace(dir)
		require.NoError(t, err)
		require.Equal(t, tree.modules[0].mod.Go.Version, work.Go.Version, "%s/go.work", dir)
		for _, r := range work.Replace {
			require.Equal(t, version, r.Old.Version, "%s/go.work: %s", dir, r.Old)
			replaced[dir+" "+r.Old.Path] = path.Join(dir, r.New.Path)
		}
	}
	license := read(t, tree.root, "LICENSE")
	for _, m := range tree.modules {
		require.Empty(t, m.mod.Replace, "%s: go install refuses a replace", m.dir)
		require.Empty(t, m.mod.Exclude, "%s: go install refuses an exclude", m.dir)
		require.Equal(t, tree.modules[0].mod.Go.Version, m.mod.Go.Version, "%s: one go line for all", m.dir)
		require.Equal(t, prefix+m.dir, m.path)
		for _, r := range m.mod.Require {
			if sibling := tree.module(r.Mod.Path); sibling != nil {
				require.Equal(t, sibling.dir, replaced[m.work+" "+r.Mod.Path], "%s/go.work: without it, no build works before %s is published", m.work, r.Mod)
			}
		}
		if isThirdParty(m.dir) {
			continue // it has its author's licence
		}
		require.Equal(t, license, read(t, tree.abs(m), "LICENSE"), "%s: every module carries the licence", m.dir)
	}
}

// TestNothingOfThisMachine rejects text that is valid only on one machine: a module registry's address, a
// path on the author's machine.
func TestNothingOfThisMachine(t *testing.T) {
	t.Parallel()
	// Split in two, so that this file does not match.
	banned := regexp.MustCompile(strings.Join([]string{
		`\bproxy\.` + `golang\.org`, `\bsum\.` + `golang\.org`, `\bgoproxy\.` + `(io|cn)`,
		`\bregistry\.` + `npmjs`, `\bpypi\.` + `org`,
		`(^|[^\w./-])/work` + `/(main|shared)\b`, `(^|[^\w./-])/tmp` + `/uwf([^\w-]|$)`,
	}, "|"))
	root, files := committed(t)
	for _, name := range files {
		if inTestdata(name) {
			continue // recorded elsewhere, verbatim
		}
		for i, line := range bytes.Split([]byte(read(t, root, name)), []byte("\n")) {
			if found := banned.Find(line); found != nil {
				t.Errorf("%s:%d: %s", name, i+1, found)
			}
		}
	}
}

// TestPathsAreThere checks that pages for contributors refer only to existing paths.
func TestPathsAreThere(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	paths, named := regexp.MustCompile("`([a-z][\\w.-]*(?:/[\\w.-]+)+)`"), 0
	for _, page := range []string{"CONTRIBUTING.md", "docs/architecture.md", "engine/doc.go"} {
		for _, found := range paths.FindAllStringSubmatch(read(t, root, page), -1) {
			named++
			if !slices.ContainsFunc(files, func(file string) bool { return file == found[1] || strings.HasPrefix(file, found[1]+"/") }) {
				t.Errorf("%s names %s, which is not there", page, found[1])
			}
		}
	}
	require.Greater(t, named, 50)
}

// TestPackages checks what a newcomer reads of every package.
func TestPackages(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	documented := map[string]bool{}
	for _, name := range files {
		if path.Ext(name) != ".go" || isThirdParty(name) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") || inTestdata(name) {
			continue
		}
		dir := path.Dir(name)
		documented[dir] = documented[dir] || file.Doc != nil
		for _, problem := range processFacts(fset, file, name) {
			t.Error(problem)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment", dir)
		}
	}
}

// ofTheProcess lists identifiers reserved to main and to functions that replace it in a library
// (agentkit.Run), also in a file main.go. Lower layers get these in an env.Env, so that a test can simulate
// any process.
var ofTheProcess = map[string][]string{
	"os":   {"Exit", "Getenv", "LookupEnv", "Environ", "Setenv", "Args", "Stdin", "Stdout", "Stderr"},
	"time": {"Now", "Since", "Until"},
	"log":  {"Fatal", "Fatalf", "Print", "Printf", "Println"},
	"fmt":  {"Print", "Printf", "Println"},
}

// processFacts finds identifiers reserved to main in a file, and functions that run automatically.
func processFacts(fset *token.FileSet, file *ast.File, name string) []string {
	var problems []string
	add := func(pos token.Pos, text string) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", name, fset.Position(pos).Line, text))
	}
	// Code that measures time needs the real clock.
	isMain := path.Base(name) == "main.go" || path.Dir(name) == "util/env"
	mayName := slices.Contains([]string{"cas", "cas/castest"}, path.Dir(name))
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if !mayName && namesKind(n) {
				add(n.Pos(), "a node's kind is told by Kinds.Of, which knows the versions that come later, not by comparing its type")
			}
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				add(n.Pos(), "init runs before anybody asked for it")
			}
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			if ok && !isMain && slices.Contains(ofTheProcess[from.Name], n.Sel.Name) {
				add(n.Pos(), from.Name+"."+n.Sel.Name+" outside main.go")
			}
		}
		return true
	})
	return problems
}

// namesKind matches x.Kinds().Hash(…), the type of a kind's first version.
func namesKind(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Hash" {
		return false
	}
	of, ok := method.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	kinds, ok := of.Fun.(*ast.SelectorExpr)
	return ok && kinds.Sel.Name == "Kinds"
}

// committed lists the existing files that git tracks.
func committed(t *testing.T) (root string, files []string) {
	t.Helper()
	tree, err := loadTree(".")
	require.NoError(t, err)
	files, err = tree.committed(t.Context(), process{environ: os.Environ(), stderr: t.Output()})
	require.NoError(t, err, "these tests read what is committed, so they need a git checkout")
	return tree.root, files
}

// The files of a run directory are opened by one package, because direct access misses its precautions.
func TestOnlyRundirNamesItsFiles(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	names := regexp.MustCompile(`"(run\.json|agent\.lock|result\.json|totals\.json|worker\.log)"`)
	for _, name := range files {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/") || path.Dir(name) == "util/runfiles" {
			continue
		}
		if found := names.FindString(read(t, root, name)); found != "" {
			t.Errorf("%s names %s itself", name, found)
		}
	}
}

// TestNoCommandsInEngine checks that only front ends suggest commands: no text below engine begins with one.
func TestNoCommandsInEngine(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	data := []string{"uwf answer link 1\n", "uwf thread ", "uwf thread apply "} // input of a MAC, of a commit and of a reflog
	for _, name := range files {
		if !strings.HasPrefix(name, "engine/") || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				require.False(t, strings.HasPrefix(text, "uwf ") && !slices.Contains(data, text), "%s: %s", name, text)
			}
			return true
		})
	}
}

// TestNoPrograms rejects committed programs, which a go build without -o leaves beside the code.
func TestNoPrograms(t *testing.T) {
	t.Parallel()
	root, files := committed(t)
	for _, name := range files {
		info, err := os.Lstat(filepath.Join(root, name))
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(1_000_000), "%s", name)
	}
}
