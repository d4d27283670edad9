//go:build unix

package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/acp"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// agent is a fake agent with a new thread.
type agent struct {
	*agentkittest.Thread
	t       *testing.T
	state   string
	options agentkit.Options
}

// play creates a thread whose steps are made by a fake agent with arguments and a behavior.
func play(t *testing.T, config string, args ...string) *agent {
	t.Helper()
	a := &agent{t: t, state: t.TempDir()}
	exe, err := os.Executable()
	require.NoError(t, err)
	own := args[:len(args)-1]
	behaviour := strings.Fields(args[len(args)-1])
	if config != "" {
		config = "agents:\n  acp: { command: uwf-acp, " + config + " }\n"
	}
	a.Thread = agentkittest.New(t, agentkittest.Scenario{
		Task: "Do the thing.", Config: config, Environ: []string{fakeVariable + "=" + a.state},
		Args: append(append(append([]string{}, own...), "--", exe), behaviour...),
	})
	a.options = cliagent.Options(quick())
	return a
}

// quick is the adapter with no patience.
func quick() cliagent.Adapter {
	a := acp.Adapter()
	a.Timeouts.Stop = 100 * time.Millisecond
	return a
}

func (a *agent) step() *agentkittest.Outcome {
	a.t.Helper()
	return a.Run(a.options)
}

// journal returns what the agent has recorded.
func (a *agent) journal() string {
	b, err := os.ReadFile(filepath.Join(a.state, "journal"))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(a.t, err)
	}
	return string(b)
}

// gone waits for the end of a process that the agent left behind.
func (a *agent) gone() {
	a.t.Helper()
	b, err := os.ReadFile(filepath.Join(a.state, "child"))
	require.NoError(a.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(a.t, err)
	require.Eventually(a.t, func() bool { return ended(pid) }, time.Minute, 5*time.Millisecond)
}

func ended(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || err == nil && strings.Contains(string(b), ") Z ")
}

// TestStep tests a first step: the session, the turns, the answer.
func TestStep(t *testing.T) {
	t.Parallel()
	a := play(t, "", "tools")
	got := a.step().Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "all good"}, got.Output)
	require.Equal(t, protocol.CaptureTurns, got.Detail.Capture)
	require.Equal(t, "small", got.Detail.Model)
	require.Contains(t, got.Detail.AgentVersion, "1.2.3")
	require.Regexp(t, `^s-\d+-1$`, got.Step.SessionID)

	var told []string
	for _, turn := range got.Turns {
		line := string(turn.Role) + ": " + turn.Reasoning + turn.Content
		for _, c := range turn.ToolCalls {
			line += " " + c.ID + "=" + c.Name
		}
		told = append(told, line+turn.ToolCallID)
	}
	prosetest.Text(t, told)
	require.Equal(t, map[string]any{"command": "ls"}, got.Turns[1].ToolCalls[0].Args)
	require.Equal(t, map[string]any{"title": "Read a.txt"}, got.Turns[1].ToolCalls[1].Args)
	require.Contains(t, a.journal(), "mode yolo")
	require.Contains(t, a.journal(), "end of input")
}

// TestCorrection checks that a correction goes to the open session, in the same process.
func TestCorrection(t *testing.T) {
	t.Parallel()
	a := play(t, "", "bad-first")
	got := a.step().Succeeded()
	require.Equal(t, 1, strings.Count(a.journal(), "started"))
	require.NotContains(t, a.journal(), "session/")
	require.Equal(t, int64(20), got.Step.Usage.InputTokens, "what it tells is the session's")
	require.Equal(t, int64(2), got.Step.Usage.OutputTokens)
	require.InDelta(t, 0.5, *got.Step.Usage.CostUSD, 1e-9)
}

// TestLaterStep checks that a later step continues the session of the role's last one.
func TestLaterStep(t *testing.T) {
	t.Parallel()
	for behaviour, want := range map[string]struct {
		way  string
		same bool
	}{
		"answer":      {"session/resume", true},
		"load-only":   {"session/load", true},
		"late-replay": {"session/load", true}, // late updates are not the answer
		"no-resume":   {"session/load", true}, // it announces resume, but resuming fails
		"gemini":      {"", false},            // a load in the same minute would destroy it
		"forgetful":   {"", false},
		"renames":     {"session/resume", false}, // comes back with another ID, which is rejected
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			a := play(t, "", behaviour)
			first := a.step().Succeeded()
			second := a.step().Succeeded()
			require.Equal(t, "all good", second.Output.(map[string]any)["summary"])
			require.Equal(t, want.same, first.Step.SessionID == second.Step.SessionID)
			if want.way == "" {
				require.NotContains(t, a.journal(), "session/")
			} else {
				require.Contains(t, a.journal(), want.way+" "+first.Step.SessionID)
			}
			prompt, err := os.ReadFile(filepath.Join(a.state, "prompt"))
			require.NoError(t, err)
			require.Equal(t, !want.same, strings.Contains(string(prompt), "Do the thing."), "only a new session is told everything")
			for _, turn := range second.Turns {
				require.NotContains(t, turn.Content, "replayed")
			}
		})
	}
}

// TestFork checks that a forked thread continues in a copy, if the agent can make one.
func TestFork(t *testing.T) {
	t.Parallel()
	for behaviour, copies := range map[string]bool{"forks": true, "answer": false} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			a := play(t, "", behaviour)
			first := a.step().Succeeded()
			a.Thread = a.Fork()
			second := a.step().Succeeded()
			require.NotEqual(t, first.Step.SessionID, second.Step.SessionID)
			require.Equal(t, copies, strings.Contains(a.journal(), "session/fork "+first.Step.SessionID))
			require.NotContains(t, a.journal(), "session/resume")
		})
	}
}

// TestSessionLost checks that a lost session is replaced by a new one with the whole prompt.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	a := play(t, "", "answer")
	first := a.step().Succeeded()
	require.NoError(t, os.Remove(filepath.Join(a.state, "session-"+first.Step.SessionID)))
	second := a.step().Succeeded()
	require.NotEqual(t, first.Step.SessionID, second.Step.SessionID)
	require.Contains(t, second.Detail.Outcome, "started over")

	a = play(t, "", "other-session")
	prosetest.Text(t, a.step().Failed().ErrorText())
}

// TestFaults checks that every failure ends soon, with the reason and a remedy.
func TestFaults(t *testing.T) {
	t.Parallel()
	for behaviour, want := range map[string]struct {
		config string
		says   []string
	}{
		"silent":                                 {"startTimeout: 300ms", nil},
		"hang-open":                              {"startTimeout: 300ms", nil},
		"closed-input":                           {"startTimeout: 300ms", nil},
		"usage":                                  {"", []string{"exit status 2", "unknown option: acp"}},
		"version-2":                              {"", []string{"version 2"}},
		"auth":                                   {"", []string{"Authentication required", "key: API key", "Log in with a browser"}},
		"dies":                                   {"", []string{"exit status 3", "panic: out of luck"}},
		"error 401 bad key":                      {"", []string{"bad key"}},
		"error -32603 API Error: 400 stub":       {"", []string{"API Error: 400 stub"}},
		"error 500 model is down":                {"", []string{"model is down"}},
		"error -32603 context length exceeded":   {"", []string{"context length"}},
		"error -32000 Please run the login flow": {"", []string{"login flow", "--auth"}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			a := play(t, want.config, behaviour)
			head := a.Head
			got := a.step()
			if got.Failed(want.says...); behaviour != "usage" { // which error is noticed first is a race
				prosetest.Text(t, got.ErrorText())
			}
			require.Equal(t, head, a.Head)
			require.FileExists(t, filepath.Join(a.RunDir, "program.stdout"))
		})
	}
}

// A refusal comes from the model, unless the session to continue is unknown.
func TestRefusal(t *testing.T) {
	t.Parallel()
	prosetest.Text(t, play(t, "", "refuses").step().Failed().ErrorText())
	a := play(t, "", "forgets")
	first := a.step().Succeeded()
	second := a.step().Succeeded()
	require.Contains(t, a.journal(), "session/resume "+first.Step.SessionID)
	require.NotEqual(t, first.Step.SessionID, second.Step.SessionID)
	prosetest.Text(t, strings.ReplaceAll(second.Detail.Outcome, first.Step.SessionID, "<session>"))
}

// TestNotInstalled distinguishes a missing program from one that fails.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, agentkittest.Scenario{Args: []string{"--", "no-such-agent", "acp"}})
	got := th.Run(cliagent.Options(quick())).Failed()
	prosetest.Text(t, got.ErrorText())
	prosetest.Text(t, got.Stderr)
}

// TestSuspends checks that unfinished work waits for a person, with a session to continue.
func TestSuspends(t *testing.T) {
	t.Parallel()
	for behaviour, want := range map[string]struct{ config string }{
		"max-turns": {""},
		"hang":      {"idleTimeout: 300ms"},
		"hang-deaf": {"idleTimeout: 300ms"},
		"nothing":   {""},
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			a := play(t, want.config, behaviour)
			got := a.step().Succeeded()
			prosetest.Text(t, got.Suspended)
			require.NotEmpty(t, got.Step.SessionID)
			require.Equal(t, behaviour == "hang", strings.Contains(a.journal(), "cancelled"))
		})
	}
}

// TestStrangeOutput checks that invalid output does not disturb the answer.
func TestStrangeOutput(t *testing.T) {
	t.Parallel()
	a := play(t, "", "malformed")
	a.step().Succeeded()
	require.Equal(t, 2, strings.Count(a.journal(), `reply 7 {"code":-32601`))
	require.Contains(t, a.journal(), "reply 0")
	for _, behaviour := range []string{"long-line", "orphan", "late-answer"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			a := play(t, "", behaviour)
			a.step().Succeeded()
			if behaviour == "orphan" {
				a.gone()
			}
		})
	}
}

// TestKilledRun checks that stopping a step stops the agent, and that the next step continues.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	a := play(t, "", "once-hang")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by a person")
	go func() {
		defer cancel(stopped)
		for ctx.Err() == nil { // until its first text arrives, which includes the session
			known, err := filepath.Glob(filepath.Join(a.Home, "sessions", "uwf-acp", "records", "*.json"))
			if err != nil || len(known) > 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	prosetest.Text(t, a.RunContext(ctx, a.options).Failed().ErrorText())
	require.Contains(t, a.journal(), "cancelled")
	got := a.step().Succeeded()
	require.Contains(t, a.journal(), "session/resume "+got.Step.SessionID)
}

func TestArguments(t *testing.T) {
	t.Parallel()
	a := play(t, "model: large", "--session-mode", "plan", "--auth=key", "--offer", "files", "answer")
	a.step().Succeeded()
	for _, line := range []string{"mode plan\n", "authenticate key\n", "model large\n"} {
		require.Contains(t, a.journal(), line)
	}
	prosetest.Text(t, play(t, "", "--session-mode", "dance", "answer").step().Failed().ErrorText())
	prosetest.Text(t, play(t, "model: huge", "answer").step().Failed().ErrorText())
	for _, args := range []string{
		"--session-mode", "--offer=terminal", "--auth=", "--modle",
	} {
		got := play(t, "", args, "answer").step()
		require.Equal(t, protocol.CodeUsage.ExitCode(), got.ExitCode)
		prosetest.Text(t, got.Stderr, args)
	}
}

// Another command has separate sessions, although its steps belong to uwf-acp as well.
func TestAnotherCommand(t *testing.T) {
	t.Parallel()
	a := play(t, "", "answer")
	first := a.step().Succeeded()
	b := play(t, "", "answer other")
	b.Thread, b.state = a.Thread, a.state
	exe, err := os.Executable()
	require.NoError(t, err)
	e := b.Process()
	e.Args = []string{"--", exe, "answer", "other", b.ID, b.Role}
	var out strings.Builder
	e.Stdout, e.Stderr = &out, &out
	require.Zero(t, agentkit.Main(t.Context(), e, cliagent.Options(quick())), out.String())
	require.NotContains(t, a.journal(), "session/resume "+first.Step.SessionID)
}
