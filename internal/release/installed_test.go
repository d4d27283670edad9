//go:build install

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// released builds what make archives does for this platform, and serves it.
func released(t *testing.T) (d delivery, url string) {
	t.Helper()
	tree, err := loadTree(".")
	require.NoError(t, err)
	nfpm := filepath.Join(tree.root, ".tmp", "tools", "nfpm")
	require.FileExists(t, nfpm, "make test-install installs it")
	d = delivery{
		out: t.TempDir(), version: "v0.0.1", targets: []target{{runtime.GOOS, runtime.GOARCH}}, nfpm: nfpm,
	}
	p := process{environ: os.Environ(), stdout: t.Output(), stderr: t.Output()}
	require.NoError(t, tree.archives(t.Context(), d, p))
	return d, serve(t, d)
}

// works runs a workflow with the installed programs and no others than those on path.
func works(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	write(t, `name: hello
description: Says hello.
roles:
  one:
    description: Says hello.
    goal: Say hello.
    capabilities: []
    procedure: Say it.
    output: Words.
    frontmatter: {type: object, required: [$status], properties: {$status: {enum: [done]}}}
graph:
  $START: {_: {role: one, prompt: Say hello.}}
  one: {done: {role: $END}}
`, dir, "hello.yaml")
	write(t, `steps: [{role: one, output: "---\n$status: done\n---\nHello.\n"}]`, dir, "script.yaml")
	for _, args := range [][]string{
		{"uwf", "--version"}, {"ocas", "--version"}, {"uwf", "workflow", "validate", "hello.yaml"},
		{"uwf", "run", "./hello.yaml", "-p", "Hello", "--agent", "uwf-mock --mock-data " + filepath.Join(dir, "script.yaml")},
		{"uwf", "cas", "fsck"},
	} {
		program := lookIn(path, args[0])
		require.NotEmpty(t, program, args[0])
		cmd := exec.Command(program, args[1:]...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + path, "HOME=" + dir, "TMPDIR=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%q: %s", args, out)
		if args[1] == "--version" {
			require.Contains(t, string(out), "v0.0.1")
		}
	}
}

// lookIn finds a program in a given PATH.
func lookIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// unpack unpacks the archive for this platform.
func unpack(t *testing.T, d delivery) (dir string) {
	t.Helper()
	dir = t.TempDir()
	archive := filepath.Join(d.out, fmt.Sprintf("uwf_%s_%s_%s.tar.gz", d.version, runtime.GOOS, runtime.GOARCH))
	out, err := exec.Command("tar", "-xzf", archive, "-C", dir, "--strip-components=1").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// TestInstalled installs everything users can install from, each with an empty home, and uses it. It fails
// without dpkg, npm or Docker: make test-install selects the possible parts and prints the others.
func TestInstalled(t *testing.T) {
	d, url := released(t)
	t.Run("install.sh", func(t *testing.T) {
		path := pathWith(t, "curl")
		home, out, err := install(t, path, url)
		require.NoError(t, err, out)
		works(t, filepath.Join(home, ".local/bin")+":"+path)
	})
	t.Run("deb", func(t *testing.T) {
		root := t.TempDir()
		for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "etc/apparmor.d"} {
			require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		}
		write(t, "", root, "var/lib/dpkg/status")
		deb := filepath.Join(d.out, "uwf_0.0.1_"+runtime.GOARCH+".deb")
		// Its script is for the machine's own AppArmor, so it is not run here.
		cmd := exec.Command("dpkg", "--root="+root, "--force-not-root", "--force-bad-path", "--log=/dev/null", "--unpack", deb)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		works(t, filepath.Join(root, "usr/bin")+":"+pathWith(t, ""))
	})
	t.Run("npm", func(t *testing.T) {
		for _, scripts := range []string{"false", "true"} { // run by npm, or by the first start
			prefix := t.TempDir()
			cmd := exec.Command("npm", "install", "--global", "--prefix", prefix, "--ignore-scripts="+scripts, "--no-audit", "--no-fund",
				filepath.Join(d.out, "uwf-npm-0.0.1.tgz"))
			cmd.Env = append(os.Environ(), "UWF_DOWNLOAD="+url, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			node, err := exec.LookPath("node")
			require.NoError(t, err)
			if scripts == "true" {
				first := exec.Command(filepath.Join(prefix, "bin/uwf"), "--version")
				first.Env = append(os.Environ(), "UWF_DOWNLOAD="+url)
				out, err := first.CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			tools := pathWith(t, "")
			require.NoError(t, os.Symlink(node, filepath.Join(tools, "node")))
			env, err := exec.LookPath("env")
			require.NoError(t, err)
			require.NoError(t, os.Symlink(env, filepath.Join(tools, "env")))
			works(t, filepath.Join(prefix, "bin")+":"+tools)
		}
	})
	t.Run("container", func(t *testing.T) {
		unpacked := unpack(t, d)
		tree, err := loadTree(".")
		require.NoError(t, err)
		file := filepath.Join(tree.root, "packaging", "Dockerfile")
		for _, line := range regexp.MustCompile(`(?m)^COPY (.*) \S+$`).FindAllStringSubmatch(read(t, file), -1) {
			for _, pattern := range strings.Fields(line[1]) {
				found, err := filepath.Glob(filepath.Join(unpacked, pattern))
				require.NoError(t, err)
				require.NotEmpty(t, found, "%s of the container file is not in the archive", pattern)
			}
		}
	})
	t.Run("image", func(t *testing.T) {
		tree, err := loadTree(".")
		require.NoError(t, err)
		unpacked := unpack(t, d)
		file := filepath.Join(tree.root, "packaging", "Dockerfile")
		out, err := exec.Command("docker", "build", "-q", "-f", file, unpacked).CombinedOutput()
		require.NoError(t, err, "%s", out)
		out, err = exec.Command("docker", "run", "--rm", strings.TrimSpace(string(out)), "--version").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), d.version)
	})
}
