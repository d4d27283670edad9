package jsonata

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Our expressions with the results of JSONata 2.2.2, for functions and corner cases that cases.json doesn't
// cover.
func TestReference(t *testing.T) {
	t.Parallel()
	_, datasets := loadCases(t)
	var cases []testCase
	readJSON(t, "reference.json", &cases)
	require.Greater(t, len(cases), 300)
	compareAll(t, cases, datasets["dataset5"])
}

// The same for function values, sorting and regular expressions.
func TestReferenceFunctions(t *testing.T) {
	t.Parallel()
	var reference struct {
		Input json.RawMessage
		Cases []testCase
	}
	readJSON(t, "functions.json", &reference)
	require.Greater(t, len(reference.Cases), 500)
	compareAll(t, reference.Cases, reference.Input)
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

func compareAll(t *testing.T, cases []testCase, data json.RawMessage) {
	t.Helper()
	var input any
	require.NoError(t, json.Unmarshal(data, &input))
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
