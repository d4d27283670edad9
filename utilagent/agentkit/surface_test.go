package agentkit_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames lists the public API. Adding a name is a commitment.
func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"ErrWentOn", "Failure", "Failure.Error", "Failure.Unwrap", "Main", "Message", "OS", "Options", "Process", "Request",
		"Request.AtEnd", "Request.Content", "Request.Environ", "Request.Getenv", "Request.Hide", "Request.Log", "Request.Mail", "Request.MarkDelivered", "Request.Messages",
		"Request.RecordSession",
		"Request.StartOver", "Request.Steps", "Request.Turn", "Request.Warn", "Request.Writing",
		"Result", "Run", "Step",
	}, surfaceOf(t, ".").names)
}

// An author's agent depends only on the kit and package protocol, and on no lower package that may change.
func TestPackagesInSignatures(t *testing.T) {
	t.Parallel()
	const ours = "github.com/united-workforce/uwf/"
	for dir, want := range map[string][]string{
		".":               {ours + "protocol"},
		"../agentkittest": {ours + "protocol", ours + "utilagent/agentkit"},
		"../roles":        {ours + "utilagent/agentkit"},
		"../shellguard":   nil,
		"../mock":         {ours + "protocol", ours + "utilagent/agentkit"},
		"../builtin":      {ours + "utilagent/agentkit", ours + "utilagent/tools"},
	} {
		var found []string
		for _, p := range surfaceOf(t, dir).packages {
			if strings.Contains(p, ".") { // not in the standard library
				found = append(found, p)
			}
		}
		require.Equal(t, want, found, dir)
	}
}

// surface is the public API of a package.
type surface struct{ names, packages []string }

// surfaceOf reads the documentation of a package: its exported names with their methods, and the packages in
// their declarations.
func surfaceOf(t *testing.T, dir string) surface {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	set := token.NewFileSet()
	imports := map[string]string{}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			imports[imported[strings.LastIndex(imported, "/")+1:]] = imported
		}
		files = append(files, f)
		nothingHidden(t, f)
	}
	p, err := doc.NewFromFiles(set, files, dir) // omits unexported names and bodies
	require.NoError(t, err)
	var s surface
	values := func(list []*doc.Value) {
		for _, v := range list {
			s.names = append(s.names, v.Names...)
			for _, spec := range v.Decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok && spec.Type != nil { // a value is not part of the API
					s.named(spec.Type, imports)
				}
			}
		}
	}
	funcs := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			s.names = append(s.names, prefix+f.Name)
			s.named(f.Decl, imports)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		s.names = append(s.names, typ.Name)
		s.named(typ.Decl, imports)
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
	}
	slices.Sort(s.names)
	slices.Sort(s.packages)
	s.packages = slices.Compact(s.packages)
	return s
}

// nothingHidden fails the test if an exported struct embeds an unexported type, whose fields would be usable
// but undocumented.
func nothingHidden(t *testing.T, f *ast.File) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		if of, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range of.Fields.List {
				name, ok := field.Type.(*ast.Ident)
				require.False(t, len(field.Names) == 0 && ok && !name.IsExported(), "%s embeds %v", spec.Name, field.Type)
			}
		}
		return false
	})
}

// named adds the packages used in a declaration.
func (s *surface) named(decl ast.Node, imports map[string]string) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				s.packages = append(s.packages, imports[x.Name])
			}
		}
		return true
	})
}
