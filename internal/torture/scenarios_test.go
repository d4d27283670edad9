//go:build instruments

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScenarios runs the short form: a few rounds of each scenario, always the same ones.
func TestScenarios(t *testing.T) {
	t.Parallel()
	tools := programs(t)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			trial := newTrial(tools, t.TempDir(), 1, 0)
			trial.few = s.few
			require.NoError(t, trial.play(t.Context(), s))
			t.Logf("%d rounds; %s", trial.rounds, strings.Join(trial.notes, "; "))
		})
	}
}
