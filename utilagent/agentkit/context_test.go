package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	everywhere(t, "by name", "plain", scenario{Named: true, EdgePrompt: "--do it"}, func(t *testing.T, got *outcome) {
		require.Equal(t, "--do it", got.Succeeded().Step.EdgePrompt)
	})
	everywhere(t, "no prompt: the role's description serves", "plain", scenario{}, func(t *testing.T, got *outcome) {
		require.Equal(t, "Does the work.", got.Succeeded().Step.EdgePrompt)
	})
	everywhere(t, "the agent's own arguments", "args", scenario{Args: []string{"--file", "x"}}, func(t *testing.T, got *outcome) {
		got.Succeeded()
	})
	everywhere(t, "started by hand", "plain", scenario{ByHand: true}, func(t *testing.T, got *outcome) { got.Succeeded() })
	everywhere(t, "an outer agent's environment", "plain", scenario{
		ByHand: true, Environ: []string{"UWF_THREAD=other", "UWF_HEAD=0000000000000", "UWF_LIMIT_BASE=x"},
	}, func(t *testing.T, got *outcome) { got.Succeeded() })
}

func TestYAMLResultLine(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{Args: []string{"--format", "yaml"}})
	got := th.Run(agents()["plain"])
	require.Equal(t, 0, got.ExitCode)
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	require.Regexp(t, `^stepHash: "[0-9A-Z]{13}"$`, lines[0])
	require.Contains(t, lines, `sessionId: "s1"`)
	require.Contains(t, lines, `role: "worker"`)
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	id := "01J7K9M2XNPQR5VWBCDF8G3H4T"
	for _, c := range []struct {
		args []string
	}{
		{nil},
		{[]string{id}},
		{[]string{id, "r", "x"}},
		{[]string{id, "r", "--nope"}},
		{[]string{"--thread", id, "--role", "r", "--prompt", " "}},
		{[]string{"--thread"}},
		{[]string{id, "r", "--prompt-ref", "x"}},
		{[]string{id, "r", "--format", "xml"}},
	} {
		code, stdout, stderr := run(t, agents()["plain"], c.args)
		require.Equal(t, 2, code, c.args)
		prosetest.Text(t, stderr)
		require.Contains(t, stderr, "usage: uwf-plain <thread-id> <role>")
		require.Empty(t, stdout)
	}
}

// A misspelled flag is answered with the closest one. If the engine started the agent, the agent prints it on
// stdout as well, so that the engine can show it.
func TestNearestFlag(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{
		"--promt-ref", "--hlep", "--verison=", "--flie=x",
	} {
		code, stdout, stderr := run(t, agents()["args"], []string{"x", typed, "y"})
		require.Equal(t, 2, code, typed)
		prosetest.Text(t, stderr)
		require.Empty(t, stdout, "nobody but a person reads it")
	}
	_, _, stderr := run(t, agents()["args"], []string{"--", "--hlep"})
	prosetest.Text(t, stderr, "what stands behind -- is not ours")

	e, err := agentkit.OS()
	require.NoError(t, err)
	var out strings.Builder
	e.Args, e.Stdout, e.Stderr = []string{"--hlep"}, &out, io.Discard
	e.Environ = []string{"UWF_RUN_DIR=" + t.TempDir()}
	require.Equal(t, 2, agentkit.Main(t.Context(), e, agents()["plain"]))
	require.JSONEq(t, `{"error":"unknown flag --hlep","hints":["did you mean --help?","uwf-plain --help"]}`, out.String())
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	code, stdout, _ := run(t, agents()["args"], []string{"--help"})
	require.Zero(t, code)
	require.Contains(t, stdout, "usage: uwf-args <thread-id> <role>")
	require.Contains(t, stdout, "Own: --file FILE")
	code, stdout, _ = run(t, agents()["args"], []string{"x", "--version"})
	require.Zero(t, code)
	require.Equal(t, "uwf-args v1.2.3\n", stdout)
	code, _, stderr := run(t, agentkit.Options{}, nil)
	require.Equal(t, 1, code)
	prosetest.Text(t, stderr)
}

func run(t *testing.T, o agentkit.Options, args []string) (code int, stdout, stderr string) {
	e, err := agentkit.OS()
	require.NoError(t, err)
	var out, errs strings.Builder
	e.Args, e.Stdout, e.Stderr = args, &out, &errs
	e.Environ = []string{"UWF_HOME=" + t.TempDir()}
	code = agentkit.Main(t.Context(), e, o)
	return code, out.String(), errs.String()
}

// TestContextErrors checks that errors about the context contain the cause and the place.
func TestContextErrors(t *testing.T) {
	t.Parallel()
	code, _, stderr := run(t, agents()["plain"], []string{"01J7K9M2XNPQR5VWBCDF8G3H4T", "worker"})
	require.Equal(t, 1, code)
	prosetest.Text(t, stderr)

	code, _, stderr = run(t, agents()["plain"], []string{"nonsense", "worker"})
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nonsense")

	th := agentkittest.New(t, scenario{})
	th.Role = "tester"
	prosetest.Text(t, th.Run(agents()["plain"]).Failed().ErrorText())

	missing := agentkittest.New(t, scenario{Environ: []string{}})
	missing.Head = "7ZZZZZZZZZZZZ"
	got := missing.Run(agents()["plain"])
	require.Equal(t, 1, got.ExitCode)
	require.Contains(t, got.Stderr, "7ZZZZZZZZZZZZ")
	require.Contains(t, got.Stderr, missing.Home)
}

func TestDotEnvDoesNotOverride(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{Environ: []string{"A=set"}})
	require.NoError(t, os.WriteFile(filepath.Join(th.Home, ".env"), []byte("A=file\nB=file\n"), 0o600))
	var seen env.Env
	o := agents()["plain"]
	inner := o.Run
	o.Run = func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		seen = runenv.Of(ctx).Env
		return inner(ctx, req)
	}
	th.Run(o).Succeeded()
	require.Equal(t, "set", seen.Get("A"))
	require.Equal(t, "file", seen.Get("B"))
	require.Equal(t, th.ID, seen.Get(protocol.EnvThread))
}

func TestLimitBaseIsTakenOver(t *testing.T) {
	t.Parallel()
	got := agentkittest.Run(t, agents()["plain"], scenario{
		History: []agentkittest.History{{}, {}}, Environ: []string{"UWF_LIMIT_BASE=2"},
	}).Succeeded()
	require.Equal(t, 2, got.Step.LimitBase)
}

func TestRequestContainsHistory(t *testing.T) {
	t.Parallel()
	o := agents()["plain"]
	o.Run = spy(o.Run, func(req *agentkit.Request) {
		require.Equal(t, 3, req.Number)
		require.Equal(t, 2, req.Visit)
		require.Equal(t, "plain", req.Alias)
		require.Contains(t, req.Prompt, "### Step 2: worker")
		require.Equal(t, req.Prompt, req.System+"\n\n"+req.User)
		n := 2
		for s, err := range req.Steps(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, n, s.Number)
			require.Equal(t, map[string]any{"$status": "done"}, s.Output)
			content, err := req.Content(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, []string{"first", "second"}[n-1], content)
			n--
		}
		require.Zero(t, n)
	})
	agentkittest.Run(t, o, scenario{History: []agentkittest.History{{Content: "first"}, {Content: "second"}}}).Succeeded()
}

func TestAliasComesFromTheEngine(t *testing.T) {
	t.Parallel()
	o := agents()["plain"]
	o.Run = spy(o.Run, func(req *agentkit.Request) { require.Equal(t, "fast", req.Alias) })
	agentkittest.Run(t, o, scenario{Environ: []string{"UWF_AGENT=fast"}}).Succeeded()
}

// If stdout is closed, the agent reports a clear error, and nothing refers to the step.
func TestBrokenStdout(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{})
	var stderr string
	code := -1
	th.Play(func(e agentkit.Process) int {
		var errs strings.Builder
		e.Stdout, e.Stderr = brokenPipe{}, &errs
		code = agentkit.Main(t.Context(), e, agents()["plain"])
		stderr = errs.String()
		return code
	})
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "stdout: broken pipe")
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Nothing from a failed step can be mistaken for a step.
func TestStoreThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, scenario{})
	format := filepath.Join(th.Home, "cas", "format.json")
	raw, err := os.ReadFile(format)
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(raw, &f))
	f["version"] = 99 // a future version is read-only
	raw, err = json.Marshal(f)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(format, raw, 0o644))
	got := th.Run(agents()["plain"]).Failed()
	prosetest.Text(t, got.ErrorText())
	require.Equal(t, 1, got.ExitCode)
}
