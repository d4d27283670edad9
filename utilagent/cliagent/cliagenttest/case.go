// Package cliagenttest tests adapters of package cliagent with recorded runs: that they interpret them
// correctly, and that no misbehavior of a program can hang or deceive them. The test binary itself acts as
// the program:
//
//	func TestMain(m *testing.M) { cliagenttest.Main(m) }
//
//	func TestAdapter(t *testing.T) {
//		cliagenttest.Run(t, adapter(), cliagenttest.Load(t, "testdata/fixtures"))
//	}
package cliagenttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Case is a recorded run.
type Case struct {
	Name    string
	Version string   `json:"version"`
	Argv    []string `json:"argv"`
	Code    *int     `json:"rc"` // nil if it was killed
	Stderr  string   `json:"stderr"`
	Expect  Expect   `json:"expect"`
	Stdout  []byte   `json:"-"`
	Plain   bool     `json:"-"` // the output is the answer itself, not typed lines
}

// Expect is the expected interpretation of a run. Nil fields are not compared.
type Expect struct {
	Outcome   string         `json:"outcome"` // a cliagent.OutcomeKind
	Error     errorkind.Kind `json:"error_kind"`
	Message   string         `json:"error"` // substring
	Session   *string        `json:"session_id"`
	Final     *string        `json:"final"`
	Turns     *int           `json:"turns"`
	ToolCalls *int           `json:"tool_calls"`
	Usage     *Usage         `json:"usage"`
	Totals    *Usage         `json:"usage_cumulative"` // if set, Usage is the difference from the earlier totals
	Cost      *float64       `json:"cost_usd"`
	CostDelta *float64       `json:"cost_usd_delta"`
	Value     any            `json:"structured_output"`
}

// Usage counts tokens. Input excludes those read from a cache.
type Usage struct {
	Input      int64  `json:"input_tokens"`
	Output     int64  `json:"output_tokens"`
	CacheRead  int64  `json:"cache_read_tokens"`
	CacheWrite int64  `json:"cache_write_tokens"`
	Reasoning  *int64 `json:"reasoning_tokens"`
}

// Load reads the recorded runs in a directory: <name>.meta.json files, each with a <name>.jsonl or
// <name>.stdout.txt.
func Load(t testing.TB, dir string) []Case {
	t.Helper()
	metas, err := filepath.Glob(filepath.Join(dir, "*.meta.json"))
	require.NoError(t, err)
	require.NotEmpty(t, metas, "no recorded runs in %s", dir)
	var cases []Case
	for _, meta := range metas {
		data, err := os.ReadFile(meta)
		require.NoError(t, err)
		base := strings.TrimSuffix(meta, ".meta.json")
		c := Case{Name: filepath.Base(base)}
		require.NoError(t, json.Unmarshal(data, &c), meta)
		for _, ending := range []string{".jsonl", ".stdout.txt"} {
			if out, err := os.ReadFile(base + ending); err == nil {
				c.Stdout, c.Plain = out, ending != ".jsonl"
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// call returns the call of the recorded run.
func (c Case) call() cliagent.Call {
	call := cliagent.Call{
		Bin: "program", Version: cliagent.ParseVersion(c.Version), Help: c.help(), Prompt: "the prompt",
		Permission: cliagent.Bypass, Env: func(string) string { return "" },
	}
	for _, flag := range []string{"--resume", "resume", "-s", "--session"} {
		if i := slices.Index(c.Argv, flag); i >= 0 && i+1 < len(c.Argv) {
			call.Resume, call.Session = true, c.Argv[i+1]
		}
	}
	if call.Resume && c.Expect.Outcome == string(cliagent.OK) && isPlaceholder(call.Session) {
		// The recording only shows that it was continued.
		if call.Resume = c.Expect.Session != nil; call.Resume {
			call.Session = *c.Expect.Session
		}
	}
	return call
}

func isPlaceholder(id string) bool {
	return !strings.ContainsAny(id, "0123456789") || strings.Contains(id, "…")
}

// help returns the program's help: it supports the recorded options.
func (c Case) help() string { return strings.Join(c.Argv, "\n") }

func (c Case) exit() cliagent.Exit {
	e := cliagent.Exit{Code: -1, Signal: "killed", Stderr: c.Stderr}
	if c.Code != nil {
		e.Code, e.Signal = *c.Code, ""
	}
	return e
}
