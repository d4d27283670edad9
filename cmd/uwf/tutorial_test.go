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

	"github.com/united-workforce/uwf/util/programtest"
)

// bench is a directory in which the commands on pages of docs/ are run, with uwf and uwf-mock on PATH as in
// the stories, and a directory for other programs.
type bench struct{ bin, dir string }

func newBench(t *testing.T) bench {
	t.Helper()
	return bench{bin: t.TempDir(), dir: t.TempDir()}
}

// waitsForPeople lets a shell that stops at errors continue when a thread waits for a person.
const waitsForPeople = `set -eu
uwf() { command uwf "$@" || { code=$?; [ $code = 6 ] || return $code; }; }
`

// typeIn runs the blocks of a page marked "sh", in order, in one shell.
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

// blocks returns the code blocks of a page in a language.
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
	for _, sign := range []string{`"status":"completed"`, "How much faster?", "Now I know.", `"faults":[]`} {
		require.Contains(t, out, sign)
	}
}

// recipes copies the workflows in examples that have a script in testdata/cookbook to the bench, and configures
// the scripts as their agents.
func (b bench) recipes(t *testing.T) {
	t.Helper()
	scripts, err := filepath.Abs("testdata/cookbook")
	require.NoError(t, err)
	config, overrides := "agents:\n", "agentOverrides:\n"
	role := regexp.MustCompile(`(?m)^  ([a-z]+):\n    description: .*\n    goal:`)
	files, err := os.ReadDir(scripts)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		text, err := os.ReadFile("../../examples/" + file.Name())
		require.NoError(t, err)
		name := strings.TrimSuffix(file.Name(), ".yaml")
		b.write(t, file.Name(), string(text))
		config += fmt.Sprintf("  %s: { command: uwf-mock, args: [--mock-data, %s] }\n", name, filepath.Join(scripts, file.Name()))
		overrides += "  " + name + ":\n"
		for _, r := range role.FindAllStringSubmatch(string(text), -1) {
			overrides += "    " + r[1] + ": " + name + "\n"
		}
	}
	b.write(t, "home/config.yaml", config+overrides)
}

func (b bench) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(b.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestCookbook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.recipes(t)
	out := b.typeIn(t, "examples.md")
	for _, sign := range []string{
		"Three tries failed, the last with: R3", "The tests pass.", "the run has cost $1.10 of at most $1.00", `"message":"v1.2.0 is tagged."`, "\nv1.2.0\n", "#7 wrong-result: stats.go:27, shown by go test",
	} {
		require.Contains(t, out, sign)
	}
}

func TestCI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.recipes(t)
	require.Contains(t, b.typeIn(t, "ci.md"), "done\n")
	result, err := os.ReadFile(filepath.Join(b.dir, "result.json"))
	require.NoError(t, err)
	for _, field := range []string{`"thread":`, `"status":"completed"`, `"message":"#7 wrong-result: `, `"output":{`, `"totals":`} {
		require.Contains(t, string(result), field)
	}
}

func TestYourAgent(t *testing.T) {
	t.Parallel()
	out := newBench(t).typeIn(t, "write-an-agent.md")
	require.Contains(t, out, `"message":"3 files"`)
	require.Contains(t, out, "counter")
}

// TestQuickStart runs the page's commands with a scripted Claude Code.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, "probe.yaml", `steps: [{ role: probe, output: "---\n$status: done\nanswer: I am Claude.\n---\n" }]`)
	b.write(t, "fix-script.yaml", `steps:
  - { role: planner, output: "---\n$status: ready\ncause: C\nplan: P\n---\n" }
  - { role: developer, output: "---\nsummary: S\ntestResult: ok\n---\n" }
  - { role: reviewer, output: "---\n$status: approved\nsummary: The median is right.\n---\n" }
`)
	program := filepath.Join(b.bin, "uwf-claude-code")
	programtest.Write(t, program, fmt.Sprintf(`#!/bin/sh
case "$1" in
--version) echo uwf-claude-code 1.0 ;;
--check) echo '{"program":"/usr/bin/claude","version":"2.1.197","problems":[]}' ;;
*) if [ "$2" = probe ]; then script=probe; else script=fix-script; fi; exec uwf-mock --mock-data %s/$script.yaml "$@" ;;
esac
`, b.dir))
	out := b.typeIn(t, "quickstart.md")
	for _, sign := range []string{"I am Claude.", "The median is right.", "changes files in the directory"} {
		require.Contains(t, out, sign)
	}
}
