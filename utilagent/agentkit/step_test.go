package agentkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

type (
	scenario = agentkittest.Scenario
	outcome  = agentkittest.Outcome
)

func done(summary string) map[string]any {
	return map[string]any{"$status": "done", "summary": summary}
}

func TestAnswerBecomesAStep(t *testing.T) {
	t.Parallel()
	everywhere(t, "plain", "plain", scenario{Task: "Fix it.", EdgePrompt: "Do it now."}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, done("it works"), got.Output)
		require.Equal(t, "uwf-plain", got.Step.Agent)
		require.Equal(t, "s1", got.Step.SessionID)
		require.Equal(t, protocol.ByFrontmatter, got.Step.ExtractedBy)
		require.Equal(t, "Do it now.", got.Step.EdgePrompt)
		require.LessOrEqual(t, got.Step.StartedAtMs, got.Step.CompletedAtMs)
		require.Equal(t, got.Step.Detail, got.Result.DetailHash)
		require.Equal(t, got.Step.Usage, got.Result.Usage)
		require.Equal(t, "worker", got.Result.Role)
		require.Contains(t, got.Prompt, "## Task\n\nFix it.")
		require.Contains(t, got.Prompt, "Do it now.")
		// The body is never lost, even if an agent records nothing.
		require.Equal(t, good, got.Content)
		require.Len(t, got.Turns, 1)
		require.Equal(t, protocol.CaptureFinal, got.Detail.Capture)
		require.Empty(t, got.Stderr)
	})
}

func TestTurnsAreStoredAsTheyHappen(t *testing.T) {
	t.Parallel()
	everywhere(t, "recorded", "talks", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, got.Turns, got.Announced)
		require.Len(t, got.Turns, 3)
		require.Equal(t, "ls", got.Turns[0].ToolCalls[0].Name)
		require.Equal(t, map[string]any{"path": "."}, got.Turns[0].ToolCalls[0].Args)
		require.Equal(t, 1, got.Turns[1].Index)
		require.NotZero(t, got.Turns[1].AtMs)
		require.Equal(t, protocol.CaptureTurns, got.Detail.Capture)
		require.Equal(t, "m1", got.Detail.Model)
		require.Equal(t, "stop", got.Detail.Outcome)
		require.Len(t, got.Detail.Requests, 1)
		require.Equal(t, good, got.Content)
	})
}

// The detail of the first run describes the work; corrections follow.
func TestDetailHoldsRunThenCorrections(t *testing.T) {
	t.Parallel()
	everywhere(t, "returned", "returns", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		var roles []protocol.TurnRole
		for _, turn := range got.Turns {
			roles = append(roles, turn.Role)
		}
		require.Equal(t, []protocol.TurnRole{"tool", "assistant", "user", "assistant"}, roles)
		require.Contains(t, got.Turns[2].Content, "status", "the correction names the field")
		require.Len(t, got.Announced, 3, "what happened before the correction is told before it")
		require.Equal(t, "m1", got.Detail.Model)
		require.Equal(t, good, got.Content)
	})
}

func TestCorrections(t *testing.T) {
	t.Parallel()
	everywhere(t, "the second correction fits", "fixes", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, "uwf-fixes", got.Step.Agent)
		require.Equal(t, "s3", got.Step.SessionID, "the newest session")
		require.Equal(t, &protocol.Usage{Turns: 5, OutputTokens: 20}, got.Step.Usage)
		require.Len(t, got.Turns, 5)
	})
	everywhere(t, "none fits", "never", scenario{}, func(t *testing.T, got *outcome) {
		prosetest.Text(t, got.Failed().ErrorText())
		require.Equal(t, 1, got.ExitCode)
		require.Contains(t, got.Stderr, "status")
		require.Equal(t, strings.Join([]string{wrong, "no block", wrong}, "\n\n"), got.Raw)
		require.Equal(t, int64(20), got.Result.Usage.OutputTokens)
		require.Equal(t, "s3", got.Result.SessionID)
	})
	everywhere(t, "the agent cannot continue", "invalid", scenario{}, func(t *testing.T, got *outcome) {
		prosetest.Text(t, got.Failed().ErrorText())
		require.Equal(t, wrong, got.Raw)
	})
	everywhere(t, "continue fails", "breaks", scenario{}, func(t *testing.T, got *outcome) {
		got.Failed("continue: connection reset")
		require.Equal(t, wrong, got.Raw)
		require.Equal(t, int64(17), got.Result.Usage.OutputTokens, "what failed cost something too")
	})
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	everywhere(t, "error", "fails", scenario{}, func(t *testing.T, got *outcome) {
		got.Failed("run: no route to host")
		require.Equal(t, int64(9), got.Result.Usage.InputTokens)
		require.Empty(t, got.Raw)
	})
	everywhere(t, "panic", "panics", scenario{}, func(t *testing.T, got *outcome) {
		got.Failed("run: panic: oh no")
		require.Equal(t, 1, got.ExitCode)
		require.Contains(t, got.Stderr, "goroutine", "the author needs the stack")
	})
	everywhere(t, "no session id", "nosession", scenario{}, func(t *testing.T, got *outcome) {
		prosetest.Text(t, got.Failed().ErrorText())
	})
}

func TestSuspend(t *testing.T) {
	t.Parallel()
	everywhere(t, "by result", "suspends", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, "which branch?", got.Suspended)
		require.Equal(t, protocol.ByValue, got.Step.ExtractedBy)
		require.Equal(t, "which branch?", got.Content)
	})
	everywhere(t, "by text", "asks", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, "a: b", got.Suspended)
		require.Equal(t, protocol.ByFrontmatter, got.Step.ExtractedBy)
	})
}

func TestValue(t *testing.T) {
	t.Parallel()
	everywhere(t, "fits", "value", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, map[string]any{"$status": "done"}, got.Output)
		require.Equal(t, protocol.ByValue, got.Step.ExtractedBy)
		require.NotContains(t, got.Prompt, "frontmatter")
		require.JSONEq(t, `{"$status":"done"}`, got.Content)
	})
	everywhere(t, "is corrected", "badvalue", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		summary := got.Output.(map[string]any)["summary"]
		prosetest.Text(t, summary)
		require.NotContains(t, summary, "frontmatter")
	})
}

const extractConfig = `
providers: { p: { baseUrl: "http://127.0.0.1:1/v1", apiKey: k } }
models: { m: { provider: p, name: small-model } }
`

func TestExtractionByAModel(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, modelcall.Program)))
	path := []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
	on := scenario{Config: extractConfig + "modelOverrides: { extract: m }\n", Environ: path}
	everywhere(t, "switched on", "extracts", on, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, done("by small-model"), got.Output)
		require.Equal(t, protocol.ByLLM, got.Step.ExtractedBy)
		require.Equal(t, int64(100), got.Step.Usage.InputTokens)
		require.Equal(t, "I am done.", got.Content)
	})
	everywhere(t, "a default model does it", "extracts", scenario{Config: extractConfig + "defaultModel: m\n", Environ: path},
		func(t *testing.T, got *outcome) { got.Succeeded() })
	everywhere(t, "switched off", "extracts", scenario{Config: extractConfig + "defaultModel: m\nmodelOverrides: { extract: off }\n"},
		func(t *testing.T, got *outcome) { prosetest.Text(t, got.Failed().ErrorText()) })
	everywhere(t, "the answer does not say it", "invents", on, func(t *testing.T, got *outcome) {
		prosetest.Text(t, got.Failed().ErrorText())
		require.Equal(t, "I am not sure.", got.Raw)
	})
	everywhere(t, "the config is broken", "extracts", scenario{Config: "modles: {}\n"},
		func(t *testing.T, got *outcome) { got.Failed("modles") })
}

func TestTextThatNoStoreCanHold(t *testing.T) {
	t.Parallel()
	everywhere(t, "invalid UTF-8", "dirty", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Equal(t, done("a\uFFFDb"), got.Output)
		require.Contains(t, got.Content, "body \uFFFD")
	})
}

func TestNoiseOnStdoutDoesNotCostTheStep(t *testing.T) {
	t.Parallel()
	everywhere(t, "noise", "noise", scenario{}, func(t *testing.T, got *outcome) {
		got.Succeeded()
		require.Contains(t, got.Stdout, "no line feed\n{")
	})
}
