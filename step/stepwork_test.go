package step_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// counting counts node reads.
type counting struct {
	cas.Store
	gets int
}

func (c *counting) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	c.gets++
	return c.Store.Get(ctx, h)
}

type fixture struct {
	*testing.T
	store cas.Store
	typ   cas.Hash
	head  cas.Hash
}

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, store: castest.NewStore(t, cas.XXH3)}
	b := f.batch()
	var err error
	f.typ, err = b.AddSchema(t.Context(), map[string]any{
		"type": "object", "required": []any{"$status"},
		"properties": map[string]any{"$status": map[string]any{"enum": []any{"done"}}, "n": map[string]any{"type": "integer"}},
	})
	require.NoError(t, err)
	role := func(description string) protocol.Role {
		return protocol.Role{Description: description, Capabilities: []string{}, Frontmatter: f.typ}
	}
	w, err := b.Add(t.Context(), protocol.Workflow{
		Name: "w", Roles: map[string]protocol.Role{"planner": role("Plans."), "developer": role("Writes.")},
		Graph: map[string]protocol.GraphNode{},
	})
	require.NoError(t, err)
	f.head, err = b.Add(t.Context(), protocol.Start{Workflow: w, Prompt: "Fix it.", Cwd: "/repo"})
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context()))
	return f
}

func (f *fixture) batch() *cas.Batch {
	return cas.NewBatch(f.store, func() time.Time { return time.UnixMilli(1) })
}

func (f *fixture) thread(r cas.Reader) *thread.Thread {
	th, err := thread.Open(f.Context(), r, f.head)
	require.NoError(f, err)
	return th
}

func (f *fixture) submission(role string, n int, answer string) step.Submission {
	return step.Submission{
		Role: role, Type: f.typ, Output: extract.Output{Value: map[string]any{"$status": "done", "n": n}},
		ExtractedBy: protocol.ByValue, Agent: "uwf-test", SessionID: "s", Answer: answer, EdgePrompt: "go", Cwd: "/repo",
		StartedAtMs: 10, CompletedAtMs: 30,
	}
}

func (f *fixture) step(role string, n int, answer string) cas.Hash {
	result, err := step.Submit(f.Context(), f.batch(), f.thread(f.store), f.submission(role, n, answer))
	require.NoError(f, err)
	f.head = result.StepHash
	return result.StepHash
}

func (f *fixture) brief(a step.Assignment) step.Brief {
	b, err := step.NewBrief(f.Context(), f.store, f.thread(f.store), a)
	require.NoError(f, err)
	return b
}

func TestBriefOfAFirstStep(t *testing.T) {
	t.Parallel()
	f := setup(t)
	b := f.brief(step.Assignment{Thread: "T", Role: "planner", EdgePrompt: " ", Cwd: "/repo"})
	require.Equal(t, "w", b.Workflow.Name)
	require.Equal(t, "Plans.", b.Parts.EdgePrompt, "an edge without a prompt: the role's description serves")
	require.Equal(t, "Fix it.", b.Parts.Task)
	require.Equal(t, 1, b.Parts.Number)
	require.Empty(t, b.Parts.History)
	require.Contains(t, prompt.Full(b.Parts), "$status: done")
}

func TestBriefReportsHistory(t *testing.T) {
	t.Parallel()
	f := setup(t)
	planned := f.step("planner", 1, "The plan.")
	f.step("developer", 2, "The work.")

	full := f.brief(step.Assignment{Role: "planner", EdgePrompt: "Again."}).Parts
	require.Equal(t, []int{2, 1}, numbers(full))
	require.Equal(t, "The work.", full.History[0].Content)
	require.Equal(t, map[string]any{"$status": "done", "n": int64(1)}, full.History[1].Output)
	require.Equal(t, 1, full.Visit)
	require.False(t, full.Continuing)

	since := f.brief(step.Assignment{Role: "planner", EdgePrompt: "Again.", Since: planned}).Parts
	require.Equal(t, []int{2}, numbers(since))
	require.True(t, since.Continuing)

	none := f.brief(step.Assignment{Role: "planner", EdgePrompt: "Again.", Since: f.head, Rejected: "no block"}).Parts
	require.Empty(t, none.History)
	require.Equal(t, "no block", none.Rejected)
}

// The quota excludes text that the output already contains.
func TestBriefDoesNotTellTheOutputTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.submission("planner", 1, "---\n$status: done\n---\nThe body.")
	s.ExtractedBy = protocol.ByFrontmatter
	result, err := step.Submit(t.Context(), f.batch(), f.thread(f.store), s)
	require.NoError(t, err)
	f.head = result.StepHash
	f.step("developer", 2, `{"$status": "done"}`)
	p := f.brief(step.Assignment{Role: "planner"}).Parts
	require.Empty(t, p.History[0].Content)
	require.Equal(t, "The body.", p.History[1].Content)
}

func numbers(p prompt.Parts) []int {
	var n []int
	for _, s := range p.History {
		n = append(n, s.Number)
	}
	return n
}

func TestBriefCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.step("planner", 0, "")
	for n := range 9 {
		f.step("developer", n, strings.Repeat("x", 300))
	}
	p := f.brief(step.Assignment{Role: "planner", EdgePrompt: "go", Quota: 1000}).Parts
	require.Equal(t, []int{10, 9}, numbers(p))
	require.Equal(t, 8, p.Omitted)
	p = f.brief(step.Assignment{Role: "planner", EdgePrompt: "go", Quota: 1000, Since: first}).Parts
	require.Equal(t, 7, p.Omitted, "steps that the session knows are not left out")
}

// A prompt costs only what it shows: for each step its node, output, detail and last turn. In a continued
// session it costs the steps since the last one, and nothing is read twice.
func TestBriefReadsWhatItShows(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.step("planner", 99, "Let us see.")
	for n := range 9 {
		f.step("developer", n, fmt.Sprint(n, strings.Repeat("x", 300)))
	}
	last := f.step("planner", 100, "It is planned.")
	f.step("developer", 101, "It is done.")
	gets := func(ask step.Assignment) (reads, shown int) {
		c := &counting{Store: f.store}
		b := cas.NewBatch(c, time.Now)
		th := f.thread(b)
		_, err := th.Workflow(t.Context())
		require.NoError(t, err)
		_, err = b.Compiled(t.Context(), f.typ)
		require.NoError(t, err)
		c.gets = 0
		if ask.Since != "" {
			found, _, err := step.LastStep(t.Context(), th, "planner")
			require.NoError(t, err)
			require.Equal(t, last, found.Hash)
		}
		brief, err := step.NewBrief(t.Context(), b, th, ask)
		require.NoError(t, err)
		return c.gets, len(brief.Parts.History)
	}
	const each = 4 // nodes per step
	reads, shown := gets(step.Assignment{Role: "planner"})
	require.Equal(t, 12, shown)
	require.Equal(t, 12*each-1, reads, "the head was read before")
	reads, shown = gets(step.Assignment{Role: "planner", Quota: 700})
	require.Less(t, shown, 5)
	require.LessOrEqual(t, reads, (shown+1)*each, "of one it is found out that it does not fit")
	reads, shown = gets(step.Assignment{Role: "planner", Since: last})
	require.Equal(t, 1, shown)
	require.Equal(t, 1*each, reads, "the session's step is read, too, but not the head")
}

// A step costs the same in a long thread as in a short one.
func TestCostDoesNotGrowWithTheThread(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cost := func() int {
		c := &counting{Store: f.store}
		th := f.thread(c)
		_, err := step.NewBrief(t.Context(), c, th, step.Assignment{Role: "planner", EdgePrompt: "go", Quota: 2000})
		require.NoError(t, err)
		_, _, err = step.LastStep(t.Context(), th, "planner")
		require.NoError(t, err)
		return c.gets
	}
	f.step("planner", 0, "")
	for n := range 300 {
		f.step("developer", n, strings.Repeat("x", 300))
	}
	short := cost()
	for n := range 300 {
		f.step("developer", n, strings.Repeat("x", 300))
	}
	require.Equal(t, short, cost())
}

func TestLastStep(t *testing.T) {
	t.Parallel()
	f := setup(t)
	_, found, err := step.LastStep(t.Context(), f.thread(f.store), "planner")
	require.NoError(t, err)
	require.False(t, found)
	want := f.step("planner", 1, "")
	f.step("developer", 2, "")
	last, found, err := step.LastStep(t.Context(), f.thread(f.store), "planner")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, last.Hash)
}

func TestBriefErrors(t *testing.T) {
	t.Parallel()
	f := setup(t)
	_, err := step.NewBrief(t.Context(), f.store, f.thread(f.store), step.Assignment{Role: "tester"})
	var unknown *step.RoleError
	require.ErrorAs(t, err, &unknown)
	prosetest.Error(t, err)

	later := f.step("planner", 1, "")
	f.head = f.thread(f.store).StartHash
	_, err = step.NewBrief(t.Context(), f.store, f.thread(f.store), step.Assignment{Role: "planner", Since: later})
	prosetest.Error(t, err)
}

func TestSubmitWritesTheWholeStep(t *testing.T) {
	t.Parallel()
	f := setup(t)
	b := f.batch()
	turn, err := step.AddTurn(t.Context(), b, protocol.Turn{
		Role: protocol.TurnAssistant, Content: "bad\xffbytes", ToolCalls: []protocol.ToolCall{{ID: "1", Name: "x", Args: "raw\xff"}},
	})
	require.NoError(t, err)
	s := f.submission("planner", 1, "ignored")
	s.Prompt, s.Detail = "what it was told", protocol.Detail{Model: "m", Turns: []cas.Hash{turn}}
	s.Usage = &protocol.Usage{Turns: 1}
	result, err := step.Submit(t.Context(), b, f.thread(f.store), s)
	require.NoError(t, err)

	step, err := cas.Read[protocol.Step](t.Context(), f.store, result.StepHash)
	require.NoError(t, err)
	require.Equal(t, result.DetailHash, step.Detail)
	require.Equal(t, "planner", result.Role)
	promptStep, err := cas.Read[protocol.Text](t.Context(), f.store, *step.Prompt)
	require.NoError(t, err)
	require.Equal(t, protocol.Text("what it was told"), promptStep)
	detail, err := cas.Read[protocol.Detail](t.Context(), f.store, step.Detail)
	require.NoError(t, err)
	require.Equal(t, protocol.Detail{
		SessionID: "s", Model: "m", Capture: protocol.CaptureTurns, Turns: []cas.Hash{turn}, DurationMs: 20,
	}, detail)
	got, err := cas.Read[protocol.Turn](t.Context(), f.store, turn)
	require.NoError(t, err)
	require.Equal(t, "bad\uFFFDbytes", got.Content)
	require.Equal(t, "raw\uFFFD", got.ToolCalls[0].Args)
}

func TestSubmitWithoutTurnsKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	content, err := thread.Content(t.Context(), f.store, detailOf(f, f.step("planner", 1, "The body.")))
	require.NoError(t, err)
	require.Equal(t, "The body.", content)
}

func TestSubmitSuspends(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.submission("planner", 0, "")
	reason := protocol.NewSuspend("which branch?")
	s.Output = extract.Output{Suspend: &reason}
	result, err := step.Submit(t.Context(), f.batch(), f.thread(f.store), s)
	require.NoError(t, err)
	step, err := cas.Read[protocol.Step](t.Context(), f.store, result.StepHash)
	require.NoError(t, err)
	got, err := cas.Read[protocol.Suspend](t.Context(), f.store, step.Output)
	require.NoError(t, err)
	require.Equal(t, reason, got)
}

func TestSubmitRefusesWhatTheRoleMayNotSay(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.submission("planner", 0, "")
	s.Output = extract.Output{Value: map[string]any{"$status": "maybe"}}
	_, err := step.Submit(t.Context(), f.batch(), f.thread(f.store), s)
	var invalid *cas.SchemaError
	require.ErrorAs(t, err, &invalid)
}

func detailOf(f *fixture, step cas.Hash) cas.Hash {
	s, err := cas.Read[protocol.Step](f.Context(), f.store, step)
	require.NoError(f, err, fmt.Sprint(step))
	return s.Detail
}

// Arguments that a store can't hold are stored as text.
func TestDeepArguments(t *testing.T) {
	t.Parallel()
	var deep any = "bottom"
	for range cas.MaxDepth {
		deep = []any{deep}
	}
	b := cas.NewBatch(castest.NewStore(t, cas.XXH3), time.Now)
	h, err := step.AddTurn(t.Context(), b, protocol.Turn{
		Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: "1", Name: "x", Args: deep}, {ID: "2", Name: "y", Args: "text"}},
	})
	require.NoError(t, err)
	turn, err := cas.Read[protocol.Turn](t.Context(), b, h)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("[", cas.MaxDepth)+`"bottom"`+strings.Repeat("]", cas.MaxDepth), turn.ToolCalls[0].Args)
	require.Equal(t, "text", turn.ToolCalls[1].Args)
}

// The result of a submitted step is stored in its run, even if the line on stdout is lost.
func TestSubmitLeavesTheResultInTheRun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	run := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(run, "run.json"), []byte(`{"cwd":"/where/it/began"}`), 0o600))
	_, ok := step.KeptResult(run)
	require.False(t, ok)
	for n := range 2 {
		sub := f.submission("planner", n, "The plan.")
		sub.RunDir = run
		result, err := step.Submit(t.Context(), f.batch(), f.thread(f.store), sub)
		require.NoError(t, err)
		kept, ok := step.KeptResult(run)
		require.True(t, ok)
		require.Equal(t, result, kept)
		step, err := cas.Read[protocol.Step](t.Context(), f.store, result.StepHash)
		require.NoError(t, err)
		require.Equal(t, "/where/it/began", step.Cwd)
	}
	entries, err := os.ReadDir(run)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.NoError(t, os.WriteFile(filepath.Join(run, runfiles.ResultFile), []byte("{"), 0o600))
	_, ok = step.KeptResult(run)
	require.False(t, ok)

	sub := f.submission("planner", 3, "The plan.")
	sub.RunDir = filepath.Join(run, "gone")
	_, err = step.Submit(t.Context(), f.batch(), f.thread(f.store), sub)
	require.NoError(t, err, "it is on stdout still")
}
