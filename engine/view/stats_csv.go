package view

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// StatsCSV writes what [Stats] has summed up for a spreadsheet: what is unknown is an
// empty cell. Errors are those of w.
func StatsCSV(w io.Writer, s protocol.Stats) error {
	out := csv.NewWriter(w)
	_ = out.Write(append(slices.Clone(s.By), "steps", "durationMs", "tokensIn", "tokensOut", "stepsWithoutUsage", "costUsd", "stepsWithoutCost"))
	for _, r := range s.Rows {
		var cells []string
		for _, by := range s.By {
			cells = append(cells, harmlessCell(r.Of[by]))
		}
		in, written, cost := "", "", ""
		if u := r.Usage; u.Counted() {
			in, written = strconv.FormatInt(u.Tokens()-u.OutputTokens, 10), strconv.FormatInt(u.OutputTokens, 10)
		}
		if u := r.Usage; u != nil && u.CostUSD != nil {
			cost = strconv.FormatFloat(*u.CostUSD, 'f', -1, 64)
		}
		_ = out.Write(append(cells, strconv.Itoa(r.Steps), strconv.FormatInt(r.DurationMs, 10), in, written,
			strconv.Itoa(r.StepsWithoutUsage), cost, strconv.Itoa(r.StepsWithoutCost)))
	}
	out.Flush()
	return out.Error()
}

// harmlessCell is a stranger's word that no spreadsheet takes for a formula.
func harmlessCell(s string) string {
	s = plaintext.Line(s)
	if s != "" && strings.ContainsAny(s[:1], "=+-@") {
		return "'" + s
	}
	return s
}
