package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const prefix = "github.com/united-workforce/uwf/"

// layers lists which parts of the project a module may import: a module, or one package and everything below
// it. Its tests may import more if the row allows it. The first row that matches the module's directory
// applies.
var layers = []struct {
	module     string
	may, tests []string
}{
	{"protocol", nil, nil},
	{"util", []string{"protocol", "internal/thirdparty"}, nil},
	{"internal/thirdparty/*", nil, nil},
	{"cas", []string{"protocol", "util", "internal/thirdparty"}, nil},
	{"moderator", []string{"protocol", "util"}, nil},
	{"step", []string{"protocol", "util", "cas"}, nil},
	{"remote", []string{"protocol", "util", "cas"}, nil},
	{"utilagent", []string{"protocol", "util", "cas", "step"}, nil},
	{"engine", []string{"protocol", "util", "cas", "step", "moderator", "remote", "utilagent/box", "utilagent/confine", "utilagent/offlimits", "utilagent/tools"}, []string{"utilagent/mock"}},
	// Its test binary also acts as the mock agent.
	{"cmd/uwf", []string{"internal/thirdparty/cli", "protocol", "util", "cas", "step", "moderator", "remote", "engine", "utilagent/modelcall", "utilagent/box", "utilagent/confine", "utilagent/offlimits", "utilagent/tools"}, []string{"utilagent/mock", "utilagent/agentkit", "utilagent/builtin"}},
	{"cmd/ocas", []string{"internal/thirdparty/cli", "protocol", "util", "cas"}, nil},
	{"cmd/uwf-import-original", []string{"internal/thirdparty/cli", "protocol", "util", "cas"}, nil},
	{"cmd/uwf-web", []string{"internal/thirdparty/cli", "protocol", "util", "cas", "step", "moderator", "engine"}, []string{"utilagent/mock"}},
	{"cmd", []string{"protocol", "utilagent", "remote", "util"}, []string{"cas"}},
	{"ext/temporal", []string{"internal/thirdparty/cli", "protocol", "util", "cas", "remote", "moderator/inputs", "engine"}, nil},
	{"examples/agents/*", []string{"utilagent"}, nil},
	{"examples/embed", []string{"protocol", "util", "cas", "engine"}, []string{"utilagent/mock"}},
	{"examples/*", []string{"utilagent"}, nil},
	{"ext/postgres", []string{"protocol", "util", "cas", "remote"}, nil},
	{"internal/bench", nil, []string{"protocol", "util", "cas", "step"}},
	// It uses only the programs' command lines, so that it outlives their code.
	{"internal/corpus", nil, nil},
	{"internal/attacks", nil, nil},
	{"internal/release", nil, nil},
	// It uses only the programs' command lines.
	{"internal/webtest", nil, nil},
	// It uses only the program's command line; it needs the agent kit for its witness.
	{"internal/torture", []string{"protocol", "internal/bench/loop", "util/env", "util/durable", "utilagent/agentkit"}, nil},
}

// onlyIn lists which packages may import a third-party one: the wrappers that handle its pitfalls, so that it
// can be replaced.
var onlyIn = map[string][]string{
	"github.com/santhosh-tekuri/jsonschema/":  nil, // its copy below is linked instead
	prefix + "internal/thirdparty/jsonschema": {"util/jsonschema", "internal/thirdparty/"},
	"github.com/goccy/go-yaml":                {"util/"},
	"github.com/joho/godotenv":                nil,
	"github.com/oklog/ulid/":                  nil,
	prefix + "internal/thirdparty/lean/":      {"util/"},
	"github.com/zeebo/xxh3":                   nil,
	prefix + "internal/thirdparty/xxh3":       {"cas", "internal/thirdparty/"},
	"github.com/klauspost/compress/":          {"cas/bundle", "cas/fsstore", "cas/castest"},
	"github.com/urfave/cli/":                  nil,
	prefix + "internal/thirdparty/cli":        {"internal/thirdparty/", "cmd/", "util/cmdline", "util/cmdreftest", "cas/ocascli", "ext/temporal/uwf-temporal"},
	"go.temporal.io/":                         {"ext/temporal/"},
	"github.com/jackc/pgx/":                   {"ext/postgres/pgstore", "ext/postgres/internal/pgtest"},
}

// oracles lists which packages may import a third-party one in their tests only, to compare our code with it:
// the schemas for editors use keywords that our store's dialect lacks, and a copy must equal the original.
var oracles = map[string][]string{
	"github.com/joho/godotenv":               {"internal/thirdparty/lean"},
	"github.com/oklog/ulid/":                 {"internal/thirdparty/lean"},
	"github.com/urfave/cli/":                 {"internal/thirdparty/cli"},
	"github.com/zeebo/xxh3":                  {"internal/thirdparty/xxh3"},
	"github.com/santhosh-tekuri/jsonschema/": {"moderator/workflow", "util/config", "internal/thirdparty/jsonschema"},
}

// never lists what must not be linked into a package, even indirectly.
var never = []struct{ pkg, other, because string }{
	{"utilagent/agentkit", "net/http", "an agent that needs no model links no HTTP client"},
	{"utilagent/agentkit", prefix + "utilagent/llm", "what needs a model is handed in"},
	{"cas/thread", "net/http", "the store is local"},
	{"utilagent/tools", "net/http", "only fetch_url needs it, which is a package of its own"},
	{"utilagent/acp", "net/http", "an adapter starts with every step"},
	{"utilagent/cliagent", "net/http", "an adapter starts with every step"},
	{"utilagent/box/proxy", "net/http", "adapters serve it"},
	{"cmd/uwf", "net/http", "uwf-llm asks models, and uwf-web sends webhooks"},
	{"cmd/uwf", "crypto/tls", "see net/http"},
	{"cmd/uwf", "html/template", "uwf-web writes pages"},
	{"cmd/uwf", "text/template", "its MethodByName makes the linker keep every exported method"},
}

// TestLayers checks the imports, for every platform that we build for.
func TestLayers(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(".")
	require.NoError(t, err)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			packages := list(t, tree.root, goos)
			for _, p := range packages {
				if strings.HasPrefix(p.ImportPath+"/", prefix) {
					checkImports(t, tree, p)
				}
			}
			for _, n := range never {
				require.Contains(t, packages, prefix+n.pkg)
				if slices.Contains(linked(packages, prefix+n.pkg), n.other) {
					t.Errorf("%s links %s: %s", n.pkg, n.other, n.because)
				}
			}
			for _, found := range linked(packages, prefix+"protocol") {
				if !packages[found].Standard && found != prefix+"protocol" {
					t.Errorf("protocol links %s: it stands on the standard library alone", found)
				}
			}
		})
	}
}

// TestLayersOfExtensions does the same for the modules in separate workspaces. It parses their files, since
// go list would need their dependencies.
func TestLayersOfExtensions(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(".")
	require.NoError(t, err)
	_, files := committed(t)
	for _, m := range tree.modules {
		if m.work == "." {
			continue
		}
		for _, name := range files {
			if path.Ext(name) != ".go" || !strings.HasPrefix(name, m.dir+"/") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(tree.root, name), nil, parser.ImportsOnly)
			require.NoError(t, err)
			p := listedPackage{ImportPath: prefix + path.Dir(name)}
			p.Module = &struct{ Path string }{m.path}
			for _, i := range file.Imports {
				imported, err := strconv.Unquote(i.Path.Value)
				require.NoError(t, err)
				if strings.HasSuffix(name, "_test.go") {
					p.TestImports = append(p.TestImports, imported)
				} else {
					p.Imports = append(p.Imports, imported)
				}
			}
			checkImports(t, tree, p)
		}
	}
}

func checkImports(t *testing.T, tree *tree, p listedPackage) {
	for i, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
		for foreign, wrappers := range onlyIn {
			within := func(wrapper string) bool { return strings.HasPrefix(p.ImportPath, prefix+wrapper) }
			if i >= len(p.Imports) {
				wrappers = slices.Concat(wrappers, oracles[foreign])
			}
			if strings.HasPrefix(imported, foreign) && !slices.ContainsFunc(wrappers, within) {
				t.Errorf("%s imports %s, which only %s may", p.ImportPath, imported, strings.Join(wrappers, ", "))
			}
		}
		if strings.HasPrefix(imported, prefix) && !mayImport(t, tree, p.Module.Path, imported, i >= len(p.Imports)) {
			t.Errorf("%s imports %s: its module may not", p.ImportPath, imported)
		}
	}
}

// mayImport looks a module up in layers. A new module needs a row there.
func mayImport(t *testing.T, tree *tree, module, imported string, inTest bool) bool {
	if imported == module || strings.HasPrefix(imported, module+"/") && !inner(tree, module, imported) {
		return true
	}
	for _, row := range layers {
		if ok, _ := path.Match(row.module, strings.TrimPrefix(module, prefix)); !ok {
			continue
		}
		may := row.may
		if inTest {
			may = slices.Concat(row.may, row.tests)
		}
		return slices.ContainsFunc(may, func(may string) bool {
			return imported == prefix+may || strings.HasPrefix(imported, prefix+may+"/")
		})
	}
	t.Errorf("module %s has no row in the table of layers", module)
	return true
}

// inner reports whether a package below a module's path belongs to a nested module.
func inner(tree *tree, module, imported string) bool {
	for _, m := range tree.modules {
		if strings.HasPrefix(m.path, module+"/") && (imported == m.path || strings.HasPrefix(imported, m.path+"/")) {
			return true
		}
	}
	return false
}

// listedPackage is the output of "go list" for a package.
type listedPackage struct {
	ImportPath, Name, Doc              string
	Standard                           bool
	Imports, TestImports, XTestImports []string
	Module                             *struct{ Path string }
}

// list lists the packages of the tree and everything they import.
func list(t *testing.T, root, goos string) map[string]listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Doc,Standard,Imports,TestImports,XTestImports,Module", "work")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	packages := map[string]listedPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages[p.ImportPath] = p
	}
}

// linked lists everything that a package links into a program.
func linked(packages map[string]listedPackage, root string) []string {
	seen := map[string]bool{root: true}
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range packages[queue[0]].Imports {
			if !seen[imported] {
				seen[imported] = true
				queue = append(queue, imported)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
