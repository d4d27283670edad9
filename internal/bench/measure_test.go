package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// costs is a side that costs these amounts, one after the other.
func costs(amounts ...float64) side {
	return func(context.Context) (float64, error) {
		next := amounts[0]
		amounts = append(amounts[1:], next)
		return next, nil
	}
}

var patient = pace{rounds: 5, budget: time.Hour}

func TestRatio(t *testing.T) {
	t.Parallel()
	// The machine slows down tenfold in the third round; the first is not counted.
	r := versus("a", costs(999, 20, 20, 200, 30, 20), 2, "b", costs(1, 10, 10, 100, 10, 10)).measure(t.Context(), patient)
	require.Empty(t, r.Error)
	require.Equal(t, 5, r.Rounds)
	require.InDelta(t, 2, r.Median, 1e-9)
	require.InDelta(t, 2, r.Min, 1e-9)
	require.InDelta(t, 20, r.Amounts[1].Median, 1e-9)
	require.False(t, r.Missed, "what is just kept is kept")
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	r := grows("a", "things", 0.05, []int{1, 10, 100}, func(n int) side { return costs(float64(n)) }).measure(t.Context(), patient)
	require.InDelta(t, 1, r.Median, 1e-9)
	require.True(t, r.Missed)
	require.Equal(t, "1: 1, 10: 10, 100: 100 ms", r.amounts())
}

func TestRoundsEnd(t *testing.T) {
	t.Parallel()
	p := pace{rounds: 20, budget: time.Second}
	require.True(t, p.over(20, 0, 0), "as many as were asked for")
	require.True(t, p.over(5, 5, 0), "as many as the row wants")
	require.True(t, p.over(fewest, 0, time.Minute), "the budget is spent")
	require.False(t, p.over(fewest-1, 0, time.Minute), "there is a median in any case")
}

func TestWhatCannotBeMeasured(t *testing.T) {
	t.Parallel()
	broken := errors.New("git is not here")
	r := versus("a", costs(1), 1, "b", func(context.Context) (float64, error) { return 0, broken }).measure(t.Context(), patient)
	require.Equal(t, broken.Error(), r.Error)
	nothing := versus("a", costs(1), 1, "b", costs(0)).measure(t.Context(), patient)
	require.Equal(t, errNothing.Error(), nothing.Error)

	out := report{Rows: []result{r, {Name: "fine", Kind: ratio, Amounts: []amount{{}, {}}}}}
	require.Equal(t, []string{"a"}, out.unmeasured())
	var table bytes.Buffer
	require.NoError(t, out.table(&table))
	require.Contains(t, table.String(), "NOT MEASURED: git is not here")
	require.Contains(t, table.String(), "fine")
}

func TestTable(t *testing.T) {
	t.Parallel()
	out := report{Machine: machine{Go: "go1", System: "linux/amd64", Processors: 2, Flush: "full"}, Rows: []result{{
		Family: "step", Name: "thread step", Against: "the floor", Kind: ratio, Unit: "ms", Rounds: 3,
		figures: figures{1.5, 1.75, 2, 4.25}, Promise: 1.3, Missed: true, Amounts: []amount{{Median: 6.1}, {Median: 12.25}},
	}}}
	var table, js bytes.Buffer
	require.NoError(t, out.table(&table))
	require.Regexp(t, `go1; linux/amd64; 2 processors; flush full\n\n\| step +\| against +\| min +\| median +\| p10–p90 +\| promise +\| amounts +\|\n(\| --- +){7}\|\n`, table.String())
	require.Regexp(t, `\| thread step +\| the floor +\| 1\.50 +\| 2\.00 +\| 1\.75–4\.25 +\| ≤ 1\.3 MISSED +\| 12\.2 / 6\.1 ms +\|\n`, table.String())
	require.NoError(t, out.json(&js))
	var back report
	require.NoError(t, json.Unmarshal(js.Bytes(), &back))
	require.Equal(t, out, back)
}
