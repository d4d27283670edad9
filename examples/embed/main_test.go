package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// asAgent is set if this test binary acts as the agent.
const asAgent = "EMBED_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		mock.Run()
		return
	}
	os.Exit(m.Run())
}

const workflow = `name: book
description: A clerk books, and may ask.
roles:
  clerk:
    description: Books.
    goal: Book.
    capabilities: []
    procedure: Book.
    output: The day.
    frontmatter: {type: object, properties: {$status: {const: booked}, day: {type: string}}, required: [$status, day]}
graph:
  $START: {_: {role: clerk, prompt: Book.}}
  clerk: {booked: {role: $END, prompt: Booked.}}
`

const script = `steps:
  - suspend: For which day?
  - turns: [{say: I look into the calendar.}]
    output: "---\n$status: booked\nday: Monday\n---\nBooked.\n"
`

// outside returns a process with a home whose agent plays the script, in a directory with the workflow. It
// isn't the uwf of the engine.
func outside(t *testing.T, stdin string, args ...string) (env.Env, *bytes.Buffer) {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	for path, text := range map[string]string{
		filepath.Join(dir, "book.yaml"):    workflow,
		filepath.Join(home, "script.yaml"): script,
		filepath.Join(home, "config.yaml"): fmt.Sprintf("defaultAgent: fake\nagents: {fake: {command: %q, args: [--mock-data, %q]}}\n", exe, filepath.Join(home, "script.yaml")),
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var out bytes.Buffer
	return env.Env{
		Args: args, Dir: dir, Environ: append(os.Environ(), "UWF_HOME="+home, asAgent+"=1"),
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out, Now: time.Now, Rand: rand.Reader, Exe: exe,
	}, &out
}

func TestRun(t *testing.T) {
	process, out := outside(t, "On Monday.\n", "book.yaml", "Book a table.")
	require.NoError(t, run(host.Context(t.Context()), process), out)
	require.Equal(t, []string{
		"clerk asks: For which day?", "clerk: I look into the calendar.", "clerk: Booked.",
		"completed $START → clerk → $END",
	}, strings.Split(strings.TrimSpace(withoutFrontmatter(out.String())), "\n"))
}

// withoutFrontmatter returns an answer without its frontmatter.
func withoutFrontmatter(s string) string {
	before, rest, found := strings.Cut(s, "---\n")
	if !found {
		return s
	}
	_, said, _ := strings.Cut(rest, "---\n")
	return before + said
}

// Without an answer the thread keeps waiting.
func TestNoListener(t *testing.T) {
	process, out := outside(t, "", "book.yaml", "Book a table.")
	require.ErrorContains(t, run(host.Context(t.Context()), process), "waits for an answer")
	require.Contains(t, out.String(), "For which day?")
}

func TestNoSuchFile(t *testing.T) {
	process, _ := outside(t, "", "boko.yaml", "Book a table.")
	require.ErrorContains(t, run(host.Context(t.Context()), process), "file not found: boko.yaml")
}
