package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

func TestWorksInTheWorkspaceAndLeavesARecord(t *testing.T) {
	t.Parallel()
	e := serve(t,
		call("write_file", `{"path":"a/b.txt","content":"hello\n"}`, "read_file", `{"path":"../secret"}`),
		call("edit_file", `{"path":"a/b.txt","old_string":"hello","new_string":"bye"}`),
		say("I am ready:\n\n"+done))
	th := agentkittest.New(t, e.scenario(""))
	got := th.Run(Options()).Succeeded()

	b, err := os.ReadFile(filepath.Join(th.Cwd, "a", "b.txt"))
	require.NoError(t, err)
	require.Equal(t, "bye\n", string(b))
	require.Equal(t, map[string]any{"$status": "done", "summary": "it works"}, got.Output)
	require.Equal(t, "uwf-builtin", got.Step.Agent)
	require.Equal(t, "m-2029", got.Detail.Model)
	require.NotEmpty(t, got.Detail.AgentVersion)
	require.Equal(t, "ok", got.Detail.Outcome)
	require.Equal(t, protocol.CaptureTurns, got.Detail.Capture)
	require.Equal(t, 3, got.Step.Usage.Turns)
	require.EqualValues(t, 300, got.Step.Usage.InputTokens)

	var roles []string
	for _, turn := range got.Turns {
		roles = append(roles, string(turn.Role))
	}
	require.Equal(t, "assistant tool tool assistant tool assistant", strings.Join(roles, " "))
	require.Equal(t, len(got.Turns), len(got.Announced), "turns are told as they happen")
	prosetest.Text(t, got.Turns[2].Content)

	first := e.messages(t, 0)
	require.Len(t, first, 2)
	prosetest.Text(t, first[0])
	require.Contains(t, first[0], "read_file, list_dir, glob, grep, write_file, edit_file.")
	require.Contains(t, first[1], "Do the work.")
}

// A rejected answer is corrected in the same conversation, in which nothing may be changed any more.
func TestCorrectionContinuesConversation(t *testing.T) {
	t.Parallel()
	e := serve(t,
		say("---\n$status: perfect\n---\n"),
		call("write_file", `{"path":"x","content":"x"}`),
		say(done))
	th := agentkittest.New(t, e.scenario(""))
	got := th.Run(Options()).Succeeded()
	require.Equal(t, 3, got.Step.Usage.Turns)
	require.NoFileExists(t, filepath.Join(th.Cwd, "x"))
	asked := e.messages(t, 2)
	require.Len(t, asked, 6) // system, user, answer, correction, call, result
	require.Contains(t, asked[3], "perfect")
	prosetest.Text(t, asked[5])
}

// A role's later visits continue its conversation with an identical start, so that a provider's prompt cache
// hits.
func TestRoleComesBackToItsConversation(t *testing.T) {
	t.Parallel()
	e := serve(t, call("list_dir", `{}`), say(done))
	th := agentkittest.New(t, e.scenario(""))
	th.Run(Options()).Succeeded()
	first := e.messages(t, 1)
	th.Run(Options()).Succeeded()
	second := e.messages(t, 2)
	require.Equal(t, first, second[:len(first)])
	require.Equal(t, "assistant: "+done, second[len(first)])
	require.Len(t, second, len(first)+2)
	require.True(t, strings.HasPrefix(second[len(second)-1], "user: "))

	// A fork continues in a copy: both share the past and diverge from there.
	fork := th.Fork()
	fork.Run(Options()).Succeeded()
	th.Run(Options()).Succeeded()
	require.Len(t, e.messages(t, 3), len(second)+2)
	require.Len(t, e.messages(t, 4), len(second)+2)
}

func TestLostConversationBeginsAnew(t *testing.T) {
	t.Parallel()
	e := serve(t, say(done))
	th := agentkittest.New(t, e.scenario(""))
	th.Run(Options()).Succeeded()
	lost, err := filepath.Glob(filepath.Join(th.Home, "sessions", "uwf-builtin", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, lost, 1)
	require.NoError(t, os.Remove(lost[0]))
	got := th.Run(Options()).Succeeded()
	prosetest.Text(t, got.Stderr)
	again := e.messages(t, 1)
	require.Len(t, again, 2)
	require.Contains(t, again[1], "it works", "the prompt tells what happened so far")
}

func TestUsedUpBudgetSuspendsAndResumes(t *testing.T) {
	t.Parallel()
	e := serve(t, call("list_dir", `{}`), say("Half of it is done."), say(done))
	th := agentkittest.New(t, e.scenario("builtin: { maxTurns: 2 }"))
	got := th.Run(Options()).Succeeded()
	require.Contains(t, got.Suspended, "uwf-builtin used its 2 turns")
	prosetest.Text(t, got.Suspended)
	require.Equal(t, "max_turns", got.Detail.Outcome)
	got = th.Run(Options()).Succeeded()
	require.Empty(t, got.Suspended)
	prosetest.Text(t, strings.Join(e.messages(t, 2), "\n"))
}

func TestLongWaitSuspends(t *testing.T) {
	t.Parallel()
	e := serve(t, refuse(429, "3600"))
	got := agentkittest.Run(t, Options(), e.scenario("")).Succeeded()
	prosetest.Text(t, got.Suspended)
	require.Equal(t, 1, e.count())
}

func TestModelIsChosen(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, config string
		args         []string
		want         string
	}{
		{"default", "", nil, "main-model"},
		{"for the role", "modelOverrides: { test.worker: other }", nil, "other-model"},
		{"the agent's own", "agents: { builtin: { command: uwf-builtin, model: other } }", nil, "other-model"},
		{"the command line", "modelOverrides: { test.worker: main }", []string{"--model", "other"}, "other-model"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, say(done))
			s := e.scenario(c.config)
			s.Args = c.args
			agentkittest.Run(t, Options(), s).Succeeded()
			require.Contains(t, e.asked[0], fmt.Sprintf("%q:%q", "model", c.want))
		})
	}
}

// Errors about missing settings include the lines to add.
func TestConfigErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	got := agentkittest.Run(t, Options(), agentkittest.Scenario{}).Failed()
	prosetest.Text(t, got.ErrorText())
	require.Contains(t, got.Stderr, "config.yaml:")
	prosetest.Text(t, got.Stderr)

	e := serve(t, say(done))
	s := e.scenario("")
	s.Args = []string{"--model", "mian"}
	agentkittest.Run(t, Options(), s).Failed("mian")
	s.Args = []string{"--model"}
	require.Equal(t, 2, agentkittest.Run(t, Options(), s).ExitCode)

	got = agentkittest.Run(t, Options(), serve(t, refuse(401, "")).scenario("")).Failed("LOCAL_KEY")
	require.NotContains(t, got.Stderr+got.Stdout, key, "the endpoint's message has the key in it")
}

// A key is shown neither to the model nor to commands, and no node contains it.
func TestKeysStayHidden(t *testing.T) {
	t.Parallel()
	e := serve(t,
		call("read_file", `{"path":"env.txt"}`, "run_command", `{"command":"env; echo `+key+`"}`),
		say(done))
	s := e.scenario("")
	s.Environ = append(s.Environ, "UWF_BUILTIN_ALLOW_SHELL=1", "COPY_OF_IT=x"+key)
	th := agentkittest.New(t, s)
	require.NoError(t, os.WriteFile(filepath.Join(th.Cwd, "env.txt"), []byte("KEY="+key+"\n"), 0o600))
	got := th.Run(Options()).Succeeded()
	require.Equal(t, "1→KEY=[hidden key]\n", got.Turns[1].Content)
	require.Contains(t, got.Turns[2].Content, "PATH=")
	require.NotContains(t, got.Turns[2].Content, "LOCAL_KEY")
	require.NotContains(t, got.Turns[2].Content, "COPY_OF_IT")
	require.NotContains(t, got.Turns[2].Content, key)
}

func TestCommandsNeedAPermission(t *testing.T) {
	t.Parallel()
	const lines = `{"command":"go version"}`
	cases := []struct {
		name, config, environ string
		offered               bool
	}{
		{"switched off", "", "", false},
		{"listed", "builtin: { allowCommands: [go] }", "", true},
		{"not listed", "builtin: { allowCommands: [git] }", "", true},
		{"all", "", "UWF_BUILTIN_ALLOW_SHELL=1", true},
		{"not for this agent", "agents: { builtin: { command: uwf-builtin, permission: edits } }", "UWF_BUILTIN_ALLOW_SHELL=1", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, call("run_command", lines), say(done))
			s := e.scenario(c.config)
			if c.environ != "" {
				s.Environ = append(s.Environ, c.environ)
			}
			got := agentkittest.Run(t, Options(), s).Succeeded()
			prosetest.Text(t, got.Turns[1].Content)
			require.Equal(t, c.offered, strings.Contains(e.asked[0], `"name":"run_command"`))
		})
	}
}

func TestReadOnlyAgentHasNoToolsThatChange(t *testing.T) {
	t.Parallel()
	e := serve(t, say(done))
	s := e.scenario("agents: { builtin: { command: uwf-builtin, permission: read-only } }")
	agentkittest.Run(t, Options(), s).Succeeded()
	require.Contains(t, e.messages(t, 0)[0], "Your tools: read_file, list_dir, glob, grep.")
}

// An agent never starts the engine that is waiting for it.
func TestEngineIsNotStarted(t *testing.T) {
	t.Parallel()
	e := serve(t, call("run_command", `{"command":"touch ran; uwf thread step @"}`), say(done))
	s := e.scenario("")
	s.Environ = append(s.Environ, "UWF_BUILTIN_ALLOW_SHELL=1")
	th := agentkittest.New(t, s)
	got := th.Run(Options()).Succeeded()
	require.True(t, strings.HasPrefix(got.Turns[1].Content, "Error: "))
	require.NoFileExists(t, filepath.Join(th.Cwd, "ran"))
}
