//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bench is a directory in which pages of docs/ are typed.
type bench struct{ bin, dir string }

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{bin: t.TempDir(), dir: t.TempDir()}
	build := exec.Command("go", "build", "-o", b.bin+string(filepath.Separator), ".", "../uwf-mock")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return b
}

// waitsForPeople lets a shell that ends at the first error go on where a thread
// waits for a person.
const waitsForPeople = `set -eu
uwf() { command uwf "$@" || { code=$?; [ $code = 6 ] || return $code; }; }
`

// typeIn types a page in one shell: its blocks marked "sh", in their order.
func (b bench) typeIn(t *testing.T, page string) string {
	t.Helper()
	script := waitsForPeople + strings.Join(blocks(t, page, "sh"), "")
	shell := exec.Command("sh", "-c", script)
	shell.Dir = b.dir
	shell.Env = append(os.Environ(), "PATH="+b.bin+":"+os.Getenv("PATH"), "UWF_HOME="+filepath.Join(b.dir, "home"), "OCAS_HOME=")
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// blocks are the code blocks of a page in a language.
func blocks(t *testing.T, page, language string) (list []string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/" + page)
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(doc), -1) {
		list = append(list, block[1])
	}
	require.NotEmpty(t, list)
	return list
}

func TestTutorial(t *testing.T) {
	t.Parallel()
	out := newBench(t).typeIn(t, "tutorial.md")
	for _, sign := range []string{`"status":"completed"`, "How much faster?", "Now I know.", "characters and wrote this", `"faults":[]`} {
		require.Contains(t, out, sign)
	}
}

// TestCookbook runs the recipes: each workflow of the page is played by the script
// of its name in testdata/cookbook.
func TestCookbook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	scripts, err := filepath.Abs("testdata/cookbook")
	require.NoError(t, err)
	config, overrides := "agents:\n", "agentOverrides:\n"
	name, role := regexp.MustCompile(`(?m)^name: (\S+)$`), regexp.MustCompile(`(?m)^  ([a-z]+):\n    description: .*\n    goal:`)
	for _, block := range blocks(t, "cookbook.md", "yaml") {
		m := name.FindStringSubmatch(block)
		if m == nil {
			continue // a part of config.yaml
		}
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, m[1]+".yaml"), []byte(block), 0o600))
		config += fmt.Sprintf("  %s: { command: uwf-mock, args: [--mock-data, %s] }\n", m[1], filepath.Join(scripts, m[1]+".yaml"))
		overrides += "  " + m[1] + ":\n"
		for _, r := range role.FindAllStringSubmatch(block, -1) {
			overrides += "    " + r[1] + ": " + m[1] + "\n"
		}
	}
	home := filepath.Join(b.dir, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config+overrides), 0o600))
	out := b.typeIn(t, "cookbook.md")
	for _, sign := range []string{
		"Merge json-flag? Answer yes", "json-flag is merged.", "Approved by both.", "Three tries failed, the last with: R3", "The tests pass.",
		"Checked.", "wrong-result: stats.go:27, shown by go test",
	} {
		require.Contains(t, out, sign)
	}
}
