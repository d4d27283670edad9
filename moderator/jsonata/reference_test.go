package jsonata

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReference compares with what JSONata 2.2.2 answers over dataset5. The
// expressions are ours, the answers its own: functions and corners that the
// groups of cases.json do not reach.
func TestReference(t *testing.T) {
	t.Parallel()
	_, datasets := loadCases(t)
	var input any
	require.NoError(t, json.Unmarshal(datasets["dataset5"], &input))
	data, err := os.ReadFile(filepath.Join("testdata", "reference.json"))
	require.NoError(t, err)
	var cases []testCase
	require.NoError(t, json.Unmarshal(data, &cases))
	require.Greater(t, len(cases), 300)
	for _, c := range cases {
		t.Run(c.Expr, func(t *testing.T) {
			t.Parallel()
			x, err := Parse(c.Expr)
			var value any
			var defined bool
			if err == nil {
				value, defined, err = x.Eval(t.Context(), input, Options{})
			}
			c.compare(t, value, defined, err)
		})
	}
}
