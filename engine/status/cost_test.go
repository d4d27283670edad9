package status_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/status/statustest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/runfiles"
)

// figures are the numbers of a total; a negative cost is unknown.
type figures struct {
	Steps, Tries        int
	USD                 float64
	Tokens, Ms          int64
	NoCost, NoUsage     int
	Unpriced, Uncounted int
	Blind               int
}

func figuresOf(t protocol.Totals) figures {
	f := figures{Steps: t.Steps, Tries: t.FailedTries, USD: -1, Ms: t.DurationMs, NoCost: t.StepsWithoutCost, NoUsage: t.StepsWithoutUsage}
	if t.Usage != nil {
		f.Tokens = t.Usage.Tokens()
		if t.Usage.CostUSD != nil {
			f.USD = *t.Usage.CostUSD
		}
	}
	return f
}

// A thread has the same total however it is computed, and unknown costs don't count as zero.
func TestTotals(t *testing.T) {
	t.Parallel()
	usage := statustest.Usage
	silent := &protocol.Usage{Turns: 1, DurationMs: 7}
	for name, tt := range map[string]struct {
		steps []protocol.Step
		tries []*protocol.Usage
		want  figures
	}{
		"nothing": {want: figures{USD: -1}},
		"two steps": {steps: []protocol.Step{{Usage: usage(0.1)}, {Usage: usage(0.2)}},
			want: figures{Steps: 2, USD: 0.3, Tokens: 20, Ms: 2000}},
		"no usage": {steps: []protocol.Step{{}, {Usage: usage(0.2)}},
			want: figures{Steps: 2, USD: 0.2, Tokens: 10, Ms: 2000, NoCost: 1, NoUsage: 1, Unpriced: 1, Uncounted: 1, Blind: 1}},
		"no price": {steps: []protocol.Step{{Usage: usage(-1)}, {Usage: usage(0.2)}},
			want: figures{Steps: 2, USD: 0.2, Tokens: 20, Ms: 2000, NoCost: 1, Unpriced: 1}},
		"nothing priced": {steps: []protocol.Step{{Usage: usage(-1)}, {Usage: usage(0)}},
			want: figures{Steps: 2, USD: -1, Tokens: 20, Ms: 2000, NoCost: 1, Unpriced: 1}},
		"tries of a step": {steps: []protocol.Step{{Usage: usage(0.1), Tries: []protocol.Try{{Usage: usage(0.4), AtMs: 1}, {Usage: silent, AtMs: 2}}}},
			want: figures{Steps: 1, USD: 0.5, Tokens: 20, Ms: 1007, NoCost: 1, NoUsage: 1, Unpriced: 1, Uncounted: 1, Blind: 1}},
		"tries of no step": {steps: []protocol.Step{{Usage: usage(0.1)}}, tries: []*protocol.Usage{usage(0.4), usage(0.5)},
			want: figures{Steps: 1, Tries: 2, USD: 1, Tokens: 30, Ms: 1000}},
		"an unknown try": {tries: []*protocol.Usage{usage(0.4), silent},
			want: figures{Tries: 2, USD: 0.4, Tokens: 10, Ms: 7, NoCost: 1, NoUsage: 1, Unpriced: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := statustest.New(t)
			id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
			for _, s := range tt.steps {
				s.Role = "plan"
				w.Step(id, s, statustest.Answer("again"))
			}
			if tt.tries != nil {
				tries(w, id, tt.tries...)
			}
			path := w.RunDir(id).File(runfiles.TotalsFile)
			check := func(when string, r *status.Reader) {
				t.Helper()
				sums, err := r.SumUp(t.Context(), id, w.At(id))
				require.NoError(t, err)
				all, err := r.Totals(t.Context(), id, w.At(id))
				require.NoError(t, err)
				got := figuresOf(all)
				got.Unpriced, got.Uncounted, got.Blind = sums.Unpriced, sums.Uncounted, sums.Blind
				require.Equal(t, tt.want, got, when)
			}
			readOnly := w.Reader
			readOnly.ReadOnly = true
			check("without keeping it", &readOnly)
			require.NoFileExists(t, path)
			check("at first", &w.Reader)
			check("from what was kept", &w.Reader)
			if len(tt.steps) == 0 {
				return
			}
			require.FileExists(t, path)
			listed := func() *protocol.Totals {
				for item := range w.Overview().Threads(t.Context(), []status.Listed{{Thread: id, Head: w.At(id)}}) {
					return item.Totals
				}
				return nil
			}
			require.Equal(t, tt.want.Steps, listed().Steps)
			require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
			require.Equal(t, tt.want.Steps, listed().Steps, "a damaged sum is made again")
			require.NoError(t, os.Remove(path))
			require.Nil(t, listed(), "a listing sums nothing up")
			check("after the sum was lost", &w.Reader)

			if last := tt.steps[len(tt.steps)-1]; last.Tries == nil && tt.tries == nil { // continue from the stored sum
				w.Step(id, protocol.Step{Role: "plan", Usage: usage(1)}, statustest.Answer("again"))
				w.Step(id, protocol.Step{Role: "plan", Usage: usage(1)}, statustest.Answer("again"))
				tt.want.Steps, tt.want.Tokens, tt.want.Ms, tt.want.USD = tt.want.Steps+2, tt.want.Tokens+20, tt.want.Ms+2000, max(tt.want.USD, 0)+2
				check("two steps later", &w.Reader)
				check("two steps later, without keeping it", &readOnly)
			}
		})
	}
}

// If a node cannot be read, the total is unknown, not smaller.
func TestTotalsOfALostStep(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	lost := w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	w.Step(id, protocol.Step{Role: "plan"}, statustest.Answer("again"))
	w.Lose(lost)
	_, err := w.Totals(t.Context(), id, w.At(id))
	require.Equal(t, protocol.CodeCorrupt, fault.Of(err).Code)
	_, _, err = w.Spending(t.Context(), id)
	require.NoError(t, err, "no limit of cost, no sums")
}

// A fork counts only its own cost, including replaced steps.
func TestSpendingOfForksAndReplacedSteps(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	wf := lineOf("plan")
	wf.Limits = &protocol.Limits{MaxCostUSD: 9, MaxTokens: 999}
	id := w.Start(w.Workflow(wf), heads.Facts{})
	at := w.Step(id, protocol.Step{Role: "plan", Usage: statustest.Usage(4)}, statustest.Answer("again"))
	fork := w.Start(w.Workflow(wf), heads.Facts{
		Fork:   &heads.Fork{Thread: id, Step: at},
		Limits: &heads.Limits{Replaced: heads.Replaced{Last: at, Totals: &protocol.Totals{Usage: statustest.Usage(2)}, Unknown: protocol.Unknown{Unpriced: 1}}},
	})
	require.NoError(t, w.Heads.Move(ctx, fork, w.At(fork), at))
	for n := range 2 {
		w.Step(fork, protocol.Step{Role: "plan", Usage: statustest.Usage(1)}, statustest.Answer("again"))
		for _, r := range []*status.Reader{&w.Reader, {ReadOnly: true, Env: w.Env, Dirs: w.Dirs, FS: w.FS, Store: w.Store, Heads: w.Heads, Config: w.Config}} {
			limits, spent, err := r.Spending(ctx, fork)
			require.NoError(t, err)
			require.Equal(t, 3+float64(n), spent.CostUSD)
			require.Equal(t, int64(20+10*n), spent.Tokens)
			require.Equal(t, 1, spent.Unpriced)
			require.Equal(t, float64(9), limits.MaxCostUSD)
		}
	}
	pos, err := w.HeadPosition(ctx, fork)
	require.NoError(t, err)
	requireBudget(t, pos, 5, 969)
	require.NoError(t, pos.WithinBudget("plan"))
	w.Step(fork, protocol.Step{Role: "plan", Usage: statustest.Usage(9)}, statustest.Answer("again"))
	pos, err = w.HeadPosition(ctx, fork)
	require.NoError(t, err)
	requireBudget(t, pos, 0, 959)
	err = pos.WithinBudget("plan")
	require.Equal(t, protocol.CodeLimit, fault.Of(err).Code)
	require.Contains(t, hints.All("", fault.Of(err))[0], fork)
}

// A limit is the thread's, or else the workflow's, the config's or the default.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	all := protocol.Limits{MaxSteps: 1, MaxVisitsPerRole: 2, MaxCostUSD: 3, MaxTokens: 4, MaxTimeMs: 5}
	for name, tt := range map[string]struct {
		config    *protocol.LimitsConfig
		workflow  *protocol.Limits
		own, want protocol.Limits
		code      protocol.Code
	}{
		"the default": {want: protocol.Limits{MaxSteps: protocol.DefaultMaxSteps}},
		"the config's": {config: &protocol.LimitsConfig{MaxSteps: 7, MaxTime: "1s"},
			want: protocol.Limits{MaxSteps: 7, MaxTimeMs: 1000}},
		"the workflow's": {config: &protocol.LimitsConfig{MaxSteps: 7, MaxTokens: 8}, workflow: &protocol.Limits{MaxSteps: 1},
			want: protocol.Limits{MaxSteps: 1, MaxTokens: 8}},
		"its own": {workflow: &all, own: protocol.Limits{MaxCostUSD: 30, MaxTokens: 40, MaxTimeMs: 50},
			want: protocol.Limits{MaxSteps: 1, MaxVisitsPerRole: 2, MaxCostUSD: 30, MaxTokens: 40, MaxTimeMs: 50}},
		"all are said": {config: &protocol.LimitsConfig{MaxTime: "soon"}, workflow: &all, want: all},
		"no time":      {config: &protocol.LimitsConfig{MaxTime: "soon"}, code: protocol.CodeInvalid},
	} {
		w.Settings.Limits = tt.config
		got, err := w.Limits(t.Context(), protocol.Workflow{Limits: tt.workflow}, tt.own)
		if tt.code != "" {
			require.Equal(t, tt.code, fault.Of(err).Code, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tt.want, got, name)
	}
}

// A driver's cache of its children's costs equals what it would read.
func TestRememberedCosts(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	wf := eachOf()
	wf.Limits = &protocol.Limits{MaxCostUSD: 100}
	id := w.Start(w.Workflow(wf), heads.Facts{})
	w.Step(id, protocol.Step{Role: "plan", Usage: statustest.Usage(0)}, map[string]any{"$status": "ok", "items": []any{"u", "v", "w", "x", "y"}})
	kids := w.StartChildren(id)
	driver := w.RememberingCosts()
	same := func(want float64) {
		t.Helper()
		for range 2 {
			for _, r := range []*status.Reader{&w.Reader, driver} {
				_, spent, err := r.Spending(ctx, id)
				require.NoError(t, err)
				require.Equal(t, want, spent.CostUSD)
			}
		}
	}
	same(0)
	want, n := 0.0, 0
	for _, child := range kids {
		tries(w, child, statustest.Usage(0.5))
		same(want + 0.5)
		w.Step(child, protocol.Step{Role: "rev", Usage: statustest.Usage(1), Tries: []protocol.Try{{Agent: "pi", Error: "it broke", Usage: statustest.Usage(0.5), AtMs: 1}}}, statustest.Answer("ok"))
		want += 1.5
		same(want)
		if n++; n%2 == 0 {
			w.End(child, completed)
		}
		same(want)
	}
	reads := &counting{Store: w.Store}
	driver.Store = reads
	_, _, err := driver.Spending(ctx, id)
	require.NoError(t, err)
	known := reads.n
	reads.n = 0
	driver = driver.RememberingCosts()
	_, _, err = driver.Spending(ctx, id)
	require.NoError(t, err)
	require.Less(t, known, reads.n)
}

// The limits of all active ancestors apply to a grandchild. Ended ancestors don't count.
func TestLimitsAbove(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := context.Background()
	inner := panelOf()
	top := lineOf("plan", "sub")
	top.Roles["sub"] = protocol.Role{Workflow: w.Workflow(inner)}
	top.Limits = &protocol.Limits{MaxCostUSD: 1}
	id := planned(w, top)
	sub := w.StartChildren(id)["sub"]
	w.Step(sub, protocol.Step{Role: "plan", Usage: statustest.Usage(0.25)}, statustest.Answer("ok"))
	kids := w.StartChildren(sub)
	completes(w, kids["a"], 0.5)
	pos, err := w.HeadPosition(ctx, kids["b"])
	require.NoError(t, err)
	require.Equal(t, 0.25, *pos.Budget().CostUSD)
	require.Nil(t, pos.Budget().Tokens)
	running, err := w.Running(ctx)
	require.NoError(t, err)
	require.Empty(t, running)
	require.NoError(t, w.Heads.SetFacts(ctx, id, heads.Facts{Limits: &heads.Limits{More: protocol.Amount{CostUSD: 1}}}))
	pos, err = w.HeadPosition(ctx, kids["b"])
	require.NoError(t, err)
	require.Equal(t, 1.25, *pos.Budget().CostUSD, "with what was granted")
	w.End(id, cancelled)
	pos, err = w.HeadPosition(ctx, kids["b"])
	require.NoError(t, err)
	require.Nil(t, pos.Budget().CostUSD)
}

// The cost of a run includes what its chain doesn't have. If that is unknown, so is the total.
func TestCost(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	id := w.Start(w.Workflow(lineOf("plan")), heads.Facts{})
	w.Step(id, protocol.Step{Role: "plan", Usage: statustest.Usage(1)}, statustest.Answer("again"))
	tries(w, id, statustest.Usage(0.5))
	for unknown := range 2 {
		replaced := heads.Replaced{Totals: &protocol.Totals{Usage: statustest.Usage(2), DurationMs: 7, StepsWithoutCost: unknown}}
		require.NoError(t, w.Heads.SetFacts(t.Context(), id, heads.Facts{Limits: &heads.Limits{Replaced: replaced}}))
		sum, err := w.Cost(t.Context(), id, w.At(id))
		require.NoError(t, err)
		require.Equal(t, figures{Steps: 1, Tries: 1, USD: 3.5, Tokens: 30, Ms: 1007, NoCost: unknown}, figuresOf(sum))
	}
	_, err := w.Cost(t.Context(), id, "0000000000000")
	require.Error(t, err)
}

// A damaged line of an ancestor doesn't lift its limit. One that is no longer here has none.
func TestAncestorIsDamaged(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	ctx := t.Context()
	top := lineOf("plan", "sub")
	top.Roles["sub"] = protocol.Role{Workflow: w.Workflow(panelOf())}
	top.Limits = &protocol.Limits{MaxCostUSD: 1}
	id := planned(w, top)
	sub := w.StartChildren(id)["sub"]
	w.Step(sub, protocol.Step{Role: "plan", Usage: statustest.Usage(1.25)}, statustest.Answer("ok"))
	out, err := w.Show(ctx, sub)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusSuspended, out.Status)

	file := filepath.Join(w.Env.Dir, "threads.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for text, damaged := range map[string]bool{
		strings.Replace(string(text), id+": ", id+": x", 1):                             true,
		regexp.MustCompile("(?m)^"+id+".*\n").ReplaceAllLiteralString(string(text), ""): false,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		pos, err := w.HeadPosition(ctx, sub)
		if damaged {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Nil(t, pos.Budget().CostUSD)
	}
}

// Damaged facts can make a thread its own ancestor.
func TestAncestorsFormACycle(t *testing.T) {
	t.Parallel()
	w := statustest.New(t)
	top := lineOf("plan", "sub")
	top.Roles["sub"] = protocol.Role{Workflow: w.Workflow(panelOf())}
	top.Limits = &protocol.Limits{MaxCostUSD: 1}
	id := planned(w, top)
	sub := w.StartChildren(id)["sub"]
	w.Step(id, protocol.Step{Role: "plan", Usage: statustest.Usage(0.25)}, statustest.Answer("ok"))
	for _, of := range [][2]string{{id, sub}, {sub, id}} {
		parent := &heads.Parent{Thread: of[1], Head: w.At(of[1]), Role: "sub", Key: "x"}
		require.NoError(t, w.Heads.SetFacts(t.Context(), of[0], heads.Facts{Parent: parent}))
	}
	w.Record(id, rundir.Record{Role: "plan", Status: rundir.Running})
	w.Alive(id)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := w.HeadPosition(ctx, id)
	require.Equal(t, protocol.CodeCorrupt, fault.Of(err).Code, "%v", err)
	_, err = w.Cost(ctx, id, w.At(id))
	require.NoError(t, err)
	running, err := w.Running(ctx)
	require.NoError(t, err)
	require.Len(t, running, 1)
}
