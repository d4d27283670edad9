//go:build !windows

package dryrun_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/dryrun"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

const flow = `name: flow
description: A command, an agent and a person.
inputs:
  version: { schema: { type: string, pattern: "^v" } }
  count: { schema: { type: integer }, default: 2 }
roles:
  build: { description: Builds, run: [make, "{{$inputs.version}}"] }
  writer: { description: Writes, goal: Write. }
  judge: { description: A person decides, person: true, answer: { $status: [yes, no] } }
graph:
  $START: { role: build, prompt: "Build {{$inputs.version}}.", location: LOCATION }
  build: { passed: writer, failed: $FAIL }
  writer: judge
  judge: { "yes": $END, "no": writer }
`

// world is an engine whose project has a workflow and whose config has agents.
type world struct {
	*engine.Engine
	dir     string
	process env.Env
}

func newWorld(t *testing.T, agents string) world {
	t.Helper()
	w := world{dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "sub"), 0o700))
	path := t.TempDir()
	for _, program := range []string{"agent", "make"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, program), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	}
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.yaml"), []byte(agents), 0o600))
	w.process = env.Env{Dir: w.dir, Environ: []string{"UWF_HOME=" + home, "PATH=" + path}, Now: time.Now, Rand: rand.Reader}
	var err error
	w.Engine, err = engine.Open(t.Context(), w.process, engine.Options{})
	require.NoError(t, err)
	return w
}

// plan plans a run of a workflow with changes to its text.
func (w world) plan(t *testing.T, text string, run dryrun.Run) (dryrun.Plan, error) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "flow.yaml"), []byte(text), 0o600))
	c := catalog.Of(w.Engine)
	def, err := c.Definition(t.Context(), "flow.yaml")
	require.NoError(t, err)
	run.Definition, run.Env = def, w.process
	run.Start = protocol.Start{Prompt: "it", Cwd: w.dir}
	run.Hints = func(*protocol.Error) []string { return []string{"hint"} }
	return dryrun.Of(t.Context(), w.Engine, c, run)
}

const known = "agents: { own: { command: agent } }\ndefaultAgent: own\n"

func TestPlans(t *testing.T) {
	t.Parallel()
	valid := map[string]any{"version": "v2"}
	for name, test := range map[string]struct {
		config, location string
		given            map[string]any
		limits           protocol.Limits
		agents           map[string]string
		code             protocol.Code // of the plan
		problem          string        // role with one
		refused          bool          // there is no plan
	}{
		"ready":              {config: known, given: valid},
		"limits":             {config: known, given: valid, limits: protocol.Limits{MaxTimeMs: 1000}},
		"another agent":      {config: known, given: valid, agents: map[string]string{"writer": "own"}},
		"no such agent":      {config: known, given: valid, agents: map[string]string{"writer": "nobody"}, code: protocol.CodeNotFound, problem: "writer"},
		"no agent":           {config: "agents: {}\n", given: valid, code: protocol.CodeInvalid, problem: "writer"},
		"missing program":    {config: "agents: { own: { command: nothing } }\ndefaultAgent: own\n", given: valid, code: protocol.CodeAgent, problem: "writer"},
		"missing directory":  {config: known, given: valid, location: "gone", code: protocol.CodeFailed},
		"input is missing":   {config: known, refused: true},
		"input is invalid":   {config: known, given: map[string]any{"version": "2"}, refused: true},
		"input is unknown":   {config: known, given: map[string]any{"version": "v2", "x": 1}, refused: true},
		"unreadable config":  {config: "agents: [", given: valid, refused: true},
		"default is changed": {config: known, given: map[string]any{"version": "v2", "count": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.config)
			location := test.location
			if location == "" {
				location = "sub"
			}
			p, err := w.plan(t, strings.Replace(flow, "LOCATION", location, 1), dryrun.Run{Given: test.given, Limits: test.limits, Step: engine.StepOptions{Agents: test.agents}})
			if test.refused {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.code, p.Code)
			require.Equal(t, test.code == "", p.Ready)
			require.Equal(t, "Build v2.", p.First.Prompt)
			require.Equal(t, "build", p.First.Role)
			require.Equal(t, test.limits.MaxTimeMs, p.Limits.MaxTimeMs)
			require.Equal(t, test.location == "gone", p.First.Problem != "")
			require.Len(t, p.Roles, 3)
			for _, role := range p.Roles {
				require.Equal(t, role.Role == test.problem, role.Problem != "", "%s: %s", role.Role, role.Problem)
				require.Equal(t, role.Role == test.problem, len(role.Hints) > 0)
			}
			require.Equal(t, []string{"make", "v2"}, p.Roles[0].Command)
			require.Equal(t, []protocol.Player{protocol.PlayedByCommand, "", protocol.PlayedByPerson},
				[]protocol.Player{p.Roles[0].Player, p.Roles[1].Player, p.Roles[2].Player})
			want := map[string]any{"version": "v2", "count": test.given["count"]}
			if want["count"] == nil {
				want["count"] = int64(2)
			}
			require.EqualValues(t, want["version"], p.Inputs["version"])
			require.EqualValues(t, want["count"], p.Inputs["count"])
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	usd, tokens := 1.5, int64(2000)
	for want, worst := range map[string]engine.Worst{
		"any number of steps, any cost":     {},
		"1 step, $1.50":                     {Visits: 1, CostUSD: &usd, Tokens: &tokens},
		"3 steps, 2,000 tokens":             {Visits: 3, Tokens: &tokens},
		"any number of steps, 2,000 tokens": {Tokens: &tokens},
	} {
		require.Equal(t, want, dryrun.WorstText(worst))
	}
	for want, role := range map[string]dryrun.Role{
		"-":         {Player: protocol.PlayedByPerson},
		"make":      {Player: protocol.PlayedByCommand, Command: []string{"make", "all"}},
		"/bin/make": {Player: protocol.PlayedByCommand, Command: []string{"make"}, Path: "/bin/make"},
		"/bin/own":  {Path: "/bin/own"},
		"not found": {Problem: "it is gone"},
	} {
		require.Equal(t, want, role.Program())
		require.Equal(t, role.Player == protocol.PlayedByCommand, role.Runs() != "")
	}
}

// What is checked before a start is what the plan says.
func TestStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, known)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "flow.yaml"), []byte(strings.Replace(flow, "LOCATION", "sub", 1)), 0o600))
	c := catalog.Of(w.Engine)
	def, err := c.Definition(t.Context(), "flow.yaml")
	require.NoError(t, err)
	require.Equal(t, []string{"writer"}, dryrun.Agents(def))
	declared := dryrun.Declared(def)
	require.Len(t, declared, 2)
	require.Nil(t, declared["version"].Default)
	require.EqualValues(t, 2, declared["count"].Default)
	h, err := c.Find(t.Context(), "flow.yaml")
	require.NoError(t, err)
	start := protocol.Start{Workflow: h, Prompt: "it", Cwd: w.dir}
	require.Error(t, dryrun.Fill(t.Context(), w.Engine, &start, map[string]any{"version": "2"}))
	require.NoError(t, dryrun.Fill(t.Context(), w.Engine, &start, map[string]any{"version": "v2"}))
	require.EqualValues(t, 2, start.Inputs["count"])
	for name, test := range map[string]struct {
		agents map[string]string
		code   protocol.Code
	}{
		"sound":         {},
		"unknown agent": {agents: map[string]string{"writer": "nobody"}, code: protocol.CodeNotFound},
	} {
		err := dryrun.Check(t.Context(), w.Engine, start, protocol.Limits{}, engine.StepOptions{Agents: test.agents})
		if test.code == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, &protocol.Error{Code: test.code}, name)
	}
}
