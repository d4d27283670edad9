package jsonata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A condition on the last output takes microseconds; the cost of one on a long history is linear in its
// length.
func BenchmarkEval(b *testing.B) {
	steps := make([]any, 1000)
	for i := range steps {
		steps[i] = map[string]any{"role": "developer", "output": map[string]any{"approved": i%7 == 0, "score": int64(i)}}
	}
	input := map[string]any{
		"role": "reviewer", "depth": int64(1000), "steps": steps, "history": steps,
		"output": map[string]any{"approved": false, "comments": []any{"a", "b"}, "score": 0.5},
	}
	for name, src := range map[string]string{
		"last output": "output.approved = false and $count(output.comments) > 1",
		"last step":   "steps[-1].output.approved = false",
		"history":     "$count(history[role = 'developer' and output.approved]) > 3",
	} {
		b.Run(name, func(b *testing.B) {
			x, err := Parse(src)
			require.NoError(b, err)
			for b.Loop() {
				if _, _, err := x.Eval(b.Context(), input, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("$count(history[role = 'developer' and output.approved]) > 3"); err != nil {
			b.Fatal(err)
		}
	}
}
