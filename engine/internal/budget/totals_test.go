package budget

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// A partly known cost is a lower bound, with the number of unknown steps.
func TestTotalsSurviveTheFile(t *testing.T) {
	t.Parallel()
	cost := 0.1
	var sum protocol.Totals
	for _, u := range []*protocol.Usage{nil, {OutputTokens: 3}, {InputTokens: 1, CostUSD: &cost}, {CostUSD: &cost}, {CostUSD: &cost}} {
		sum.Add(protocol.Step{StartedAtMs: 5, CompletedAtMs: 7, Usage: u})
	}
	require.Equal(t, 1, sum.StepsWithoutUsage)
	require.Equal(t, 2, sum.StepsWithoutCost)
	require.EqualValues(t, 10, sum.DurationMs)
	marks := []Mark{{Head: cas.Hash("0000000000000"), Sums: Sums{Totals: sum}}}
	data, err := EncodeTotals(marks)
	require.NoError(t, err)
	require.Equal(t, marks, decodeTotals(data), "to the last bit")
}

func FuzzTotals(f *testing.F) {
	good, err := EncodeTotals([]Mark{{Head: "0000000000000", Sums: Sums{Totals: protocol.Totals{Steps: 1}}}})
	require.NoError(f, err)
	for _, seed := range [][]byte{good, good[:20], nil, []byte("null"), []byte(`{"version":1,"marks":[null]}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		marks := decodeTotals(data)
		if marks == nil {
			return
		}
		again, err := EncodeTotals(marks)
		require.NoError(t, err)
		require.Equal(t, marks, decodeTotals(again))
		require.True(t, json.Valid(again))
	})
}
