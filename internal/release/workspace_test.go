package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// workspace creates a small tree like ours: a leaf, a library that uses it, and a command that uses both but
// whose go.mod omits the leaf, without any release.
func workspace(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"go.work":     "go 1.26.0\n\nuse (\n\t./cmd/tool\n\t./lib\n\t./leaf\n)\n",
		".gitignore":  "*.log\n",
		"leaf/go.mod": "module example.com/ours/leaf\n\ngo 1.26.0\n",
		"leaf/leaf.go": `package leaf

const Word = "leaf"
`,
		"leaf/LICENSE":   "free\n",
		"leaf/debug.log": "ignored by git",
		"lib/go.mod":     "module example.com/ours/lib\n\ngo 1.26.0\n\nrequire example.com/ours/leaf v0.1.0\n",
		"lib/lib.go": `package lib

import "example.com/ours/leaf"

func Say() string { return "lib on " + leaf.Word }
`,
		"cmd/tool/go.mod": "module example.com/ours/cmd/tool\n\ngo 1.26.0\n\nrequire example.com/ours/lib v0.1.0\n",
		"LICENSE":         "free\n",
		"README.md":       "ours\n",
		"cmd/tool/main.go": `package main

import (
	"fmt"
	"runtime/debug"

	"example.com/ours/lib"
)

func main() {
	info, _ := debug.ReadBuildInfo()
	fmt.Println("tool", info.Main.Version)
	println(lib.Say())
}
`,
	}
	for name, text := range files {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	out, err := exec.Command("git", "init", "-q", root).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return root
}

// release runs a command as main would, without a network.
func release(t *testing.T, root string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := process{environ: append(os.Environ(), "GOPROXY=off", "GOWORK="), stdout: &out, stderr: &errs}
	code = run(t.Context(), append([]string{"-C", root}, args...), p)
	return code, out.String(), errs.String()
}

func read(t *testing.T, name ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(name...))
	require.NoError(t, err)
	return string(data)
}

func write(t *testing.T, text string, name ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(name...), []byte(text), 0o644))
}

func TestModulesComeBehindWhatTheyRequire(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(filepath.Join(workspace(t), "lib"))
	require.NoError(t, err)
	var dirs []string
	for _, m := range tree.modules {
		dirs = append(dirs, m.dir)
	}
	require.Equal(t, []string{"leaf", "lib", "cmd/tool"}, dirs)
}

func TestTreesThatCannotBeReleased(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, text, want string }{
		{"two versions", "cmd/tool/go.mod", "module example.com/ours/cmd/tool\nrequire example.com/ours/lib v0.2.0\n", "all modules share one version"},
		{"a circle", "leaf/go.mod", "module example.com/ours/leaf\nrequire example.com/ours/lib v0.1.0\n", "requires itself through others"},
		{"no module line", "leaf/go.mod", "go 1.26.0\n", "no module line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := workspace(t)
			write(t, c.text, root, c.file)
			code, _, stderr := release(t, root, "proxy", "-o", t.TempDir())
			require.Equal(t, 1, code)
			require.Contains(t, stderr, c.want)
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	for _, args := range [][]string{nil, {"publish"}, {"proxy"}, {"tidy", "now"}, {"tidy", "-sums", "-check"}, {"proxy", "-x"}} {
		code, stdout, stderr := release(t, root, args...)
		require.Equal(t, 2, code, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "usage: release", args)
	}
	code, _, stderr := release(t, t.TempDir(), "tidy")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no go.work here or above")
}

func TestTidyCompletesWhatTheWorkspaceHides(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	stale := "example.com/ours/leaf v0.1.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
	write(t, stale, root, "lib/go.sum")

	code, _, stderr := release(t, root, "tidy", "-check")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "make tidy has changed cmd/tool/go.mod, lib/go.sum: commit that")
	code, _, stderr = release(t, root, "tidy", "-check")
	require.Zero(t, code, stderr)

	code, _, stderr = release(t, root, "tidy")
	require.Zero(t, code, stderr)
	require.Contains(t, read(t, root, "cmd/tool/go.mod"), "example.com/ours/leaf v0.1.0 // indirect")
	require.NotContains(t, read(t, root, "lib/go.sum"), "example.com/ours", "lines for siblings go stale")

	code, _, stderr = release(t, root, "tidy", "-sums")
	require.Zero(t, code, stderr)
	sums := read(t, root, "cmd/tool/go.sum")
	require.Contains(t, sums, "example.com/ours/leaf v0.1.0 h1:", "a release can be built without the workspace")
	require.NotContains(t, sums, "AAAAAAAA")
}

func TestProxyServesTheTreeAsItIs(t *testing.T) {
	t.Parallel()
	root, proxy := workspace(t), t.TempDir()
	code, stdout, stderr := release(t, root, "proxy", "-o", proxy, "-version", "v0.3.0")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "3 modules at v0.3.0")
	lib := filepath.Join(proxy, "example.com", "ours", "lib", "@v")
	require.Contains(t, read(t, lib, "v0.3.0.mod"), "example.com/ours/leaf v0.3.0", "siblings follow the version")
	require.Equal(t, "v0.3.0\n", read(t, lib, "list"))
	require.Contains(t, read(t, root, "lib/go.mod"), "v0.1.0", "the tree stays as it is")
	require.Equal(t, []string{"LICENSE", "go.mod", "leaf.go"}, zipped(t, proxy, "leaf", "v0.3.0"), "what git ignores stays out")
}

func TestInstallCheck(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	code, _, stderr := release(t, root, "install-check", "cmd/tool")
	require.Equal(t, 1, code, "go finds what its go.mod lacks, and so would every user")
	require.Contains(t, stderr, "names no module with example.com/ours/leaf: run make tidy")
	code, _, stderr = release(t, root, "tidy")
	require.Zero(t, code, stderr)
	code, stdout, stderr := release(t, root, "install-check", "cmd/tool")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "install example.com/ours/cmd/tool@v0.1.0")

	write(t, read(t, root, "cmd/tool/go.mod")+"replace example.com/ours/lib => ../../lib\n", root, "cmd/tool/go.mod")
	code, _, stderr = release(t, root, "install-check")
	require.Equal(t, 1, code, "a replace breaks go install")
	require.Contains(t, stderr, "replace")

	code, _, stderr = release(t, root, "install-check", "cmd/none")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "cmd/none")
}

// A program that does not know its version was not built the way users build it.
func TestInstallCheckRunsWhatItInstalls(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	code, _, stderr := release(t, root, "tidy")
	require.Zero(t, code, stderr)
	write(t, strings.Replace(read(t, root, "cmd/tool/main.go"), "info.Main.Version", `"devel"+info.Main.Version[:0]`, 1), root, "cmd/tool/main.go")
	code, _, stderr = release(t, root, "install-check")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `tool --version says "tool devel`)
}

// commit commits everything in a workspace.
func commit(t *testing.T, root string) {
	t.Helper()
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "all"}} {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	commit(t, root)
	here := runtime.GOOS + "/" + runtime.GOARCH
	var sums [2]string
	for i := range sums {
		out := t.TempDir()
		code, stdout, stderr := release(t, root, "archives", "-o", out, "-only", here)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "archive uwf_v0.1.0_"+runtime.GOOS)
		sums[i] = read(t, out, "SHA256SUMS")
	}
	require.Equal(t, sums[0], sums[1], "the same tree gives the same bytes")
	require.Len(t, strings.Fields(sums[0]), 2)

	code, _, stderr := release(t, root, "archives", "-o", t.TempDir(), "-only", "plan9/386")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "plan9/386")
}

func TestRelease(t *testing.T) {
	t.Parallel()
	root := workspace(t)
	write(t, read(t, root, "go.work")+"\nreplace example.com/ours/leaf v0.1.0 => ./leaf\n", root, "go.work")
	commit(t, root)
	for _, name := range []string{"user.name", "user.email"} {
		require.NoError(t, exec.Command("git", "-C", root, "config", name, "x").Run())
	}
	code, _, stderr := release(t, root, "release", "-version", "0.2.0")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "such as v0.2.0")

	write(t, "more\n", root, "README.md")
	code, _, stderr = release(t, root, "release", "-version", "v0.2.0")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "not committed")
	commit(t, root)

	code, stdout, stderr := release(t, root, "release", "-version", "v0.2.0")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "git push --atomic origin HEAD leaf/v0.2.0 lib/v0.2.0 cmd/tool/v0.2.0 v0.2.0")
	require.Contains(t, read(t, root, "cmd/tool/go.mod"), "example.com/ours/lib v0.2.0")
	require.Contains(t, read(t, root, "go.work"), "example.com/ours/leaf v0.2.0 => ./leaf")
	require.Contains(t, read(t, root, "cmd/tool/go.sum"), "example.com/ours/leaf v0.2.0 h1:", "a checkout of the tag builds without the workspace")
	out, err := exec.Command("git", "-C", root, "status", "--porcelain").Output()
	require.NoError(t, err)
	require.Empty(t, string(out), "the commit holds all of it")

	code, _, stderr = release(t, root, "release", "-version", "v0.2.0")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "was released already")
}

// zipped lists the files of a module's zip, without the module@version prefix.
func zipped(t *testing.T, proxy, dir, version string) []string {
	t.Helper()
	name := filepath.Join(proxy, "example.com", "ours", dir, "@v", version+".zip")
	out := filepath.Join(t.TempDir(), "out")
	at := module.Version{Path: "example.com/ours/" + dir, Version: version}
	require.NoError(t, modzip.Unzip(out, at, name))
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
