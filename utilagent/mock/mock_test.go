package mock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/nodestest"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// The test binary acts as uwf-mock when this variable is set.
const beMock = "MOCK_TEST_BE_UWF_MOCK"

func TestMain(m *testing.M) {
	if os.Getenv(beMock) != "" || len(os.Args) > 1 && os.Args[1] == "--be-grandchild" {
		mock.Run()
	}
	os.Exit(prosetest.Run(m))
}

func parse(t *testing.T, src string) mock.Scenario {
	t.Helper()
	s, err := mock.Parse("scenario.yaml", []byte(src))
	require.NoError(t, err)
	return s
}

// start starts uwf-mock as a process on a thread.
func start(t *testing.T, e agentkit.Process, scenario string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	require.NoError(t, os.WriteFile(file, []byte(scenario), 0o600))
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, append([]string{"--mock-data", file}, e.Args...)...)
	cmd.Env, cmd.Dir = append(e.Environ, beMock+"=1"), e.Dir
	cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
	require.NoError(t, cmd.Start())
	return cmd
}

func play(t *testing.T, th *agentkittest.Thread, scenario string) *agentkittest.Outcome {
	t.Helper()
	return th.Play(func(e agentkit.Process) int {
		cmd := start(t, e, scenario)
		_ = cmd.Wait() // the exit status is checked instead
		return cmd.ProcessState.ExitCode()
	})
}

func fresh(t *testing.T) *agentkittest.Thread { return agentkittest.New(t, agentkittest.Scenario{}) }

const answer = `output: "---\n$status: done\n---\nThe work."`

func TestStepsAreChosenByTheThreadsLength(t *testing.T) {
	t.Parallel()
	// The format of the original's files.
	s := parse(t, `
steps:
  - role: worker
    output: |
      ---
      $status: done
      summary: first
      ---
      The work.
  - role: worker
    output: "---\n$status: failed\n---\n"
  - { role: reviewer, output: x }
`)
	th := fresh(t)
	got := th.Run(mock.Options(s)).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "first"}, got.Output)
	require.Equal(t, "uwf-mock", got.Step.Agent)
	require.Equal(t, "mock-0", got.Step.SessionID)
	got = th.Run(mock.Options(s)).Succeeded()
	require.Equal(t, map[string]any{"$status": "failed"}, got.Output)
	require.Equal(t, "mock-1", got.Step.SessionID)
	prosetest.Text(t, th.Run(mock.Options(s)).Failed().ErrorText())
	th.Precede(agentkittest.History{})
	prosetest.Text(t, th.Run(mock.Options(s)).Failed().ErrorText())
}

func TestReplies(t *testing.T) {
	t.Parallel()
	s := parse(t, `
steps:
  - value: { $status: done, summary: structured }
    usage: { inputTokens: 10, outputTokens: 5, costUsd: 0.5 }
  - suspend: which branch?
  - output: no frontmatter
    corrections:
      - still none
      - value: { $status: done }
  - output: no frontmatter
  - fail: no network
`)
	th := fresh(t)
	got := th.Run(mock.Options(s)).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "structured"}, got.Output)
	require.Equal(t, int64(10), got.Step.Usage.InputTokens)
	require.InDelta(t, 0.5, *got.Step.Usage.CostUSD, 0)
	require.Equal(t, "which branch?", th.Run(mock.Options(s)).Succeeded().Suspended)
	require.Len(t, th.Run(mock.Options(s)).Succeeded().Turns, 5, "the run, and two corrections with their replies")
	th.Run(mock.Options(s)).Failed("frontmatter")
	th.Precede(agentkittest.History{})
	th.Run(mock.Options(s)).Failed("run: no network")
}

func TestTurnsAndFiles(t *testing.T) {
	t.Parallel()
	th := fresh(t)
	got := th.Run(mock.Options(parse(t, `
steps:
  - turns:
      - say: I look first.
      - { tool: read_file, args: { path: a.go }, result: package a, delay: 1ms }
    files: { sub/a.txt: "hello\n" }
    delay: 1ms
    `+answer+"\n"))).Succeeded()
	require.Len(t, got.Announced, 4)
	require.Equal(t, protocol.ToolCall{ID: "call-1", Name: "read_file", Args: map[string]any{"path": "a.go"}}, got.Turns[1].ToolCalls[0])
	require.Equal(t, "package a", got.Turns[2].Content)
	require.Equal(t, "---\n$status: done\n---\nThe work.", got.Content)
	written, err := os.ReadFile(filepath.Join(th.Cwd, "sub", "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(written))

	prosetest.Text(t, th.Run(mock.Options(parse(t, `
steps:
  - { output: x }
  - { output: x, files: { ../a: "" } }
`))).Failed().ErrorText())
}

func TestMistakesInAScenario(t *testing.T) {
	t.Parallel()
	_, err := mock.Parse("s.yaml", []byte(`
steps:
  - role: 1
    outptu: x
  - { output: a, value: 1 }
  - { output: a, delay: soon, crash: later, exit: -1 }
  - turns: [{ args: {} }]
    output: a
  - 7
`))
	require.Error(t, err)
	prosetest.Error(t, err)
	_, err = mock.Parse("s.yaml", []byte("a: 1"))
	prosetest.Error(t, err)
	_, err = mock.Parse("s.yaml", []byte("steps: [\n"))
	var file *mock.FileError
	require.ErrorAs(t, err, &file)
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	th := fresh(t)
	file := filepath.Join(th.Cwd, "s.yaml")
	require.NoError(t, os.WriteFile(file, []byte("steps:\n  - "+answer+"\n"), 0o600))
	run := func(environ []string, args ...string) *agentkittest.Outcome {
		return th.Play(func(e agentkit.Process) int {
			e.Args = append(args, e.Args...)
			e.Environ = append(e.Environ, environ...)
			return mock.Main(e)
		})
	}
	got := run(nil)
	require.Equal(t, 2, got.ExitCode)
	prosetest.Text(t, got.Stderr)
	require.Contains(t, got.Stderr, "usage: uwf-mock")
	got = run(nil, "--mock-data", "nowhere.yaml")
	require.Equal(t, 2, got.ExitCode)
	require.Contains(t, got.Stderr, "nowhere.yaml")
	run(nil, "--mock-data", file).Succeeded()
	prosetest.Text(t, run([]string{mock.EnvScenario + "=s.yaml"}).Failed().ErrorText())
}

func TestNoiseDoesNotHideTheResult(t *testing.T) {
	t.Parallel()
	got := play(t, fresh(t), "steps:\n  - { stdout: \"{\\\"stepHash\\\": no\", stderr: warning, stdoutBytes: 100000, "+answer+" }\n").Succeeded()
	require.Equal(t, "warning", got.Stderr)
	require.Greater(t, len(got.Stdout), 100_000)
}

func TestResultLineAndExit(t *testing.T) {
	t.Parallel()
	got := play(t, fresh(t), "steps:\n  - { resultLine: \"{broken\", exit: 7, "+answer+" }\n")
	require.Equal(t, 7, got.ExitCode)
	require.True(t, strings.HasSuffix(got.Stdout, "{broken"))
	require.Empty(t, got.Result.StepHash)
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point        mock.Crash
		files, turns bool
		step, result bool
	}{
		{point: mock.CrashAtStart},
		{point: mock.CrashBeforeCommit, files: true, turns: true},
		{point: mock.CrashAfterCommit, files: true, turns: true, step: true},
		{point: mock.CrashAfterResult, files: true, turns: true, step: true, result: true},
	} {
		t.Run(string(c.point), func(t *testing.T) {
			t.Parallel()
			th := fresh(t)
			got := play(t, th, "steps:\n  - { crash: "+string(c.point)+", turns: [{ say: hello }], files: { f: x }, "+answer+" }\n")
			require.Equal(t, -1, got.ExitCode, "killed by a signal")
			require.Equal(t, c.turns, len(got.Announced) > 0)
			require.Equal(t, c.result, got.Result.StepHash != "")
			_, err := os.Stat(filepath.Join(th.Cwd, "f"))
			require.Equal(t, c.files, err == nil)
			require.Equal(t, c.step, hasStep(t, th))
		})
	}
}

// hasStep reports whether a step node is in the store.
func hasStep(t *testing.T, th *agentkittest.Thread) bool {
	for h, err := range nodestest.Of(t, th).All(t.Context(), "") {
		require.NoError(t, err)
		n, err := nodestest.Of(t, th).Get(t.Context(), h)
		require.NoError(t, err)
		if n.Type == nodestest.Of(t, th).Kinds().Hash(protocol.KindStep) {
			return true
		}
	}
	return false
}

func TestHangEndsWithItsContext(t *testing.T) {
	t.Parallel()
	th := fresh(t)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go func() {
		ready := filepath.Join(th.Cwd, "ready")
		for ctx.Err() == nil {
			if _, err := os.Lstat(ready); err == nil {
				stop(errors.New("stopped"))
			}
			time.Sleep(time.Millisecond)
		}
	}()
	got := th.RunContext(ctx, mock.Options(parse(t, "steps: [{ hang: true, files: { ready: x } }]")))
	got.Failed("stopped")
}

func FuzzParse(f *testing.F) {
	f.Add("steps:\n  - role: a\n    output: x\n    corrections: [a, { value: 1 }]\n    grandchild: { for: 1s, pidFile: p }\n")
	f.Add("steps: [{ files: [], usage: 1, turns: { a: b } }]")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := mock.Parse("f", []byte(src))
		if err == nil {
			require.NotNil(t, s)
		}
	})
}

// The error for a scenario by role includes the missing role.
func TestAScenarioWithoutARole(t *testing.T) {
	t.Parallel()
	prosetest.Text(t, fresh(t).Run(mock.Options(parse(t, "roles:\n  lister:\n    - { "+answer+" }\n"))).Failed().ErrorText())
}
