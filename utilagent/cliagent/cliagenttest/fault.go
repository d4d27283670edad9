package cliagenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// fault is a misbehavior of a program.
type fault struct {
	name   string
	change func(*script)
	// bad means there can be no answer, so the step fails or waits for a person.
	bad bool
	// lines means it is a fault only for a program that prints typed lines.
	lines bool
}

// faults lists the tested misbehaviors, most common first.
var faults = []fault{
	{name: "none", change: func(*script) {}},
	{name: "written in pieces", change: func(s *script) { s.Fault = "in pieces" }},
	{name: "CR LF", change: func(s *script) { s.Stdout = bytes.ReplaceAll(s.Stdout, []byte("\n"), []byte("\r\n")) }},
	{name: "byte order mark", change: func(s *script) { s.Stdout = append([]byte("\ufeff"), s.Stdout...) }},
	{name: "no last line end", change: func(s *script) { s.Stdout = bytes.TrimRight(s.Stdout, "\n") }},
	{name: "garbage at the end", lines: true, change: func(s *script) { s.Stdout = append(s.Stdout, "\x00\xff{\"half\": "...) }},
	{name: "a line of 5 MiB", lines: true, change: func(s *script) {
		s.Stdout = append([]byte(strings.Repeat("x", 5<<20)+"\n"), s.Stdout...)
	}},
	{name: "a flood on stderr", change: func(s *script) {
		noise := bytes.Repeat([]byte("noise \x1b[31mred\x1b[0m\n"), 30_000)
		s.Stderr = slices.Concat(noise, s.Stderr, noise)
	}},
	{name: "stdin is not read", change: func(s *script) { s.Fault = "does not read" }},
	{name: "hangs after its last word", lines: true, change: func(s *script) { s.Fault = "hangs" }},
	{name: "hangs and is deaf to signals", lines: true, change: func(s *script) { s.Fault = "deaf to signals" }},
	{name: "a child keeps the pipe", change: func(s *script) { s.Fault = "leaves a child" }},
	{name: "fails after a good result", lines: true, change: func(s *script) { s.Code = 7 }},

	{name: "says nothing, for ever", bad: true, change: func(s *script) { s.Fault = "silent" }},
	{name: "prints nothing", bad: true, change: func(s *script) { s.Stdout = nil }},
	{name: "prints something else", bad: true, lines: true, change: func(s *script) { s.Stdout = bytes.Repeat([]byte("\x00\x01\xfe binary\n\x80"), 50_000) }},
	{name: "is cut off and killed", bad: true, change: func(s *script) {
		s.Stdout, s.Fault = s.Stdout[:len(s.Stdout)/3], "killed"
	}},
}

// quick returns timeouts for a test: sufficient for a slow machine, and short where the test waits for them.
func (f fault) quick(t cliagent.Timeouts) cliagent.Timeouts {
	t.Start, t.Idle, t.Tool, t.Total = 2*time.Minute, 2*time.Minute, 2*time.Minute, 4*time.Minute
	t.Grace, t.Stop = 300*time.Millisecond, 300*time.Millisecond
	if f.name == "says nothing, for ever" {
		t.Start, t.Idle, t.Total = time.Second, time.Second, 3*time.Second
	}
	return t
}

// check runs a step with a program that has the fault.
func (f fault) check(t *testing.T, a cliagent.Adapter, c Case) {
	s := script{Version: a.Program + " " + c.Version, Help: c.help(), Stdout: bytes.Clone(c.Stdout), Stderr: []byte(c.Stderr), Pids: filepath.Join(t.TempDir(), "pids")}
	f.change(&s)
	t.Cleanup(func() { end(s.Pids) })
	got := Step(t, f.adapt(a), s.file(t))
	if f.bad {
		if got.ExitCode == 0 {
			require.NotEmpty(t, got.Suspended, "there is no answer: %+v", got.Output)
			return
		}
		require.Empty(t, got.Result.StepHash)
		require.NotEmpty(t, got.Result.Error)
		return
	}
	got.Succeeded()
	require.Equal(t, *c.Expect.Final, got.Content, "detail: %+v", got.Detail)
}

func (f fault) adapt(a cliagent.Adapter) cliagent.Adapter {
	a.Timeouts = f.quick(a.Timeouts)
	return a
}

// Step runs one step with a program that plays a script.
func Step(t *testing.T, a cliagent.Adapter, scriptFile string) *agentkittest.Outcome {
	t.Helper()
	task := strings.Repeat("A long task. ", 20_000) // exceeds a pipe's buffer
	return agentkittest.Run(t, cliagent.Options(a), scenario(a, scriptFile, task))
}

// scenario returns a thread for a program that plays a script.
func scenario(a cliagent.Adapter, scriptFile, task string) agentkittest.Scenario {
	s := agentkittest.Scenario{
		Task: task,
		Schema: map[string]any{ // matches the recorded answers
			"type": "object", "required": []any{"status"}, "properties": map[string]any{"status": map[string]any{"const": "done"}},
		},
		Environ: []string{
			"UWF_" + strings.ToUpper(strings.ReplaceAll(a.Name, "-", "_")) + "_BIN=" + self(), scriptVariable + "=" + scriptFile,
			"GORACE=atexit_sleep_ms=0", // the race detector otherwise delays each exit by a second
		},
	}
	if a.Commanded {
		s.Args = []string{"--", self()}
	}
	return s
}

func (s script) file(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// end kills leftover children.
func end(pids string) {
	data, err := os.ReadFile(pids)
	if err != nil {
		return // there are none
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		panic(fmt.Sprintf("externaltest: %q is no process id", data))
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may have exited
		_, _ = p.Wait()
	}
}
