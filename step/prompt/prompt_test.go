package prompt_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/prosetest"
)

func role() protocol.Role {
	return protocol.Role{
		Description: "Writes code", Goal: "You are a developer.", Capabilities: []string{"coding"},
		Procedure: "1. Read.\n2. Write.", Output: "A working change.",
	}
}

func parts() prompt.Parts {
	return prompt.Parts{
		Role: role(), RoleName: "developer", Schema: map[string]any{},
		Task: "Fix the bug.", EdgePrompt: "Implement the plan.", Cwd: "/repo",
		Thread: "01J7K9M2XNPQR5VWBCDF8G3H4T", Number: 2,
		History: []prompt.Step{{Number: 1, Role: "planner", Agent: "uwf-echo", Output: map[string]any{"plan": "a b"}, Content: "The plan."}},
	}
}

// An agent needs, in this order: the format, its role, the task, the history, the instruction and the place.
func TestFullHasEverythingInOrder(t *testing.T) {
	t.Parallel()
	full := prompt.Full(parts())
	at := 0
	for _, want := range []string{
		"## Deliverable Format", "Focus exclusively on YOUR role", "## Goal\n\nYou are a developer.",
		"## Capabilities\n\n- coding", "## Prepare", "uwf thread read", "## Procedure", "## Output",
		"## Task\n\nFix the bug.", "## What Happened So Far", "### Step 1: planner", `Output: {"plan":"a b"}`,
		"#### Step Content\n\n", ">\nThe plan.\n</step-output id=", "## Moderator Instruction\n\nImplement the plan.",
		"## Working Directory\n\nYou work in `/repo`", "step 2 of thread 01J7K9M2XNPQR5VWBCDF8G3H4T", "no turn before",
	} {
		i := strings.Index(full[at:], want)
		require.GreaterOrEqual(t, i, 0, "missing or out of order: %s\n%s", want, full)
		at += i
	}
	require.Equal(t, full, prompt.System(parts())+"\n\n"+prompt.User(parts()))
	require.Equal(t, full, prompt.Full(parts()), "not deterministic")
}

// The prompt contains the artifacts directory only if the workflow or the task mentions it.
func TestArtifactsAreNamedIfTheyAreUsed(t *testing.T) {
	t.Parallel()
	p := parts()
	p.Artifacts = "/home/u/.uwf/artifacts/01J7K9M2XNPQR5VWBCDF8G3H4T"
	require.NotContains(t, prompt.Full(p), p.Artifacts)
	require.Equal(t, prompt.System(parts()), prompt.System(p))
	p.EdgePrompt = "Write $UWF_ARTIFACTS_DIR/plan.md."
	require.Contains(t, prompt.Full(p), "$UWF_ARTIFACTS_DIR is `"+p.Artifacts+"`")
	p.EdgePrompt, p.Role.Procedure = "Go.", "Read $UWF_ARTIFACTS_DIR/plan.md."
	require.Contains(t, prompt.Full(p), p.Artifacts)
}

// The beginning must be identical for all steps of a role, or the prompt cache can't hit.
func TestSystemStaysTheSame(t *testing.T) {
	t.Parallel()
	later := parts()
	later.History, later.EdgePrompt, later.Number, later.Visit, later.Continuing = nil, "Again.", 9, 3, true
	require.Equal(t, prompt.System(parts()), prompt.System(later))
}

func TestContinuingLeavesOutWhatTheSessionHas(t *testing.T) {
	t.Parallel()
	p := parts()
	p.Continuing, p.Visit, p.Rejected = true, 2, "/plan: missing"
	full := prompt.Full(p)
	require.NotContains(t, full, "## Task")
	require.NotContains(t, full, "## Goal")
	prosetest.Text(t, full)
}

func TestStructuredAgentsGetNoFormat(t *testing.T) {
	t.Parallel()
	p := parts()
	p.Structured = true
	full := prompt.Full(p)
	require.NotContains(t, full, "frontmatter")
	prosetest.Text(t, full)
}

func TestTextsAreCleaned(t *testing.T) {
	t.Parallel()
	p := parts()
	p.Task = "a\x1b[31mred\x00\r\nb\xff\u0085end"
	p.History[0].Content = "\x07bell"
	full := prompt.Full(p)
	require.True(t, utf8.ValidString(full))
	require.Contains(t, full, "a\uFFFD[31mred\uFFFD\nb\uFFFD\uFFFDend")
	require.Contains(t, full, "\uFFFDbell")
}

func TestHistoryReadsOnlyWhatFits(t *testing.T) {
	t.Parallel()
	pulled := 0
	endless := func(yield func(prompt.Step, error) bool) {
		for n := 1_000_000; ; n-- {
			pulled++
			if !yield(prompt.Step{Number: n, Role: "r", Agent: "a", Output: "x", Content: strings.Repeat("é", 900)}, nil) {
				return
			}
		}
	}
	got, err := prompt.History(endless, 5000)
	require.NoError(t, err)
	require.Len(t, got, 5)
	require.LessOrEqual(t, pulled, 6)
	require.Equal(t, 1_000_000, got[0].Number)

	pulled = 0
	got, err = prompt.History(endless, 1_000_000)
	require.NoError(t, err)
	require.Len(t, got, prompt.HistorySteps)
	require.Equal(t, prompt.HistorySteps, pulled)
}

func TestHistoryCutsOnlyANewestStepThatIsTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 3000) + "THE END"
	got, err := prompt.History(seq([]prompt.Step{{Number: 7, Role: "r", Output: "x", Content: long}, {Number: 6, Content: "never"}}), 1000)
	require.NoError(t, err)
	require.Len(t, got, 1)
	prosetest.Text(t, got[0].Content)
	require.True(t, strings.HasSuffix(got[0].Content, "THE END"))
	require.Less(t, len(got[0].Content), 1100)
}

func TestHistoryPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("node is corrupt")
	_, err := prompt.History(func(yield func(prompt.Step, error) bool) { yield(prompt.Step{}, broken) }, 0)
	require.ErrorIs(t, err, broken)
}

func TestCorrectionNamesTheProblemAndTheFormat(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"properties": map[string]any{"plan": map[string]any{"type": "string"}}, "required": []any{"plan"}}
	text := prompt.Correction("/plan: missing", schema)
	prosetest.Text(t, text)
	value := prompt.ValueCorrection("/plan: missing", schema)
	require.Contains(t, value, "/plan: missing")
	require.Contains(t, value, `"plan"`)
	require.NotContains(t, value, "frontmatter")
}

func TestExtractionForbidsInvention(t *testing.T) {
	t.Parallel()
	system, user := prompt.Extraction("Read the plan.", map[string]any{"type": "object"}, "I did it.")
	require.True(t, strings.HasPrefix(system, "Read the plan."))
	prosetest.Text(t, system)
	require.Contains(t, system, `"type": "object"`)
	require.Regexp(t, `^<answer id=([0-9a-f]{16}) note="[^"]+">\nI did it.\n</answer id=[0-9a-f]{16}>$`, user)
}

// A long task that the workflow passes on unchanged appears only once.
func TestLongTaskIsSentOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Fix it. ", 100)
	full := prompt.Full(prompt.Parts{Task: long, EdgePrompt: long + "\n"})
	require.Equal(t, 1, strings.Count(full, strings.TrimSpace(long)))
	prosetest.Text(t, full)
	require.Equal(t, 2, strings.Count(prompt.Full(prompt.Parts{Task: "Fix it.", EdgePrompt: "Fix it."}), "Fix it."))
	require.Contains(t, prompt.Full(prompt.Parts{Task: long, EdgePrompt: long, Continuing: true}), long[:600], "a session that goes on has no task above")
}
