package yamldoc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mapping on one line accepts a value that is longer than a line.
func TestSetLongValuesOnOneLine(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", 120) + ".yaml"
	for _, src := range []string{"a: {b: {c: d}}\n", "a: {b: {c: d, args: [x]}} # kept\n", "a:\n  b: {c: d}\n", "a:\n  b:\n    c: d\n"} {
		got, err := Set([]byte(src), []string{"a", "b", "args"}, []any{"--data", long}, Bounds{})
		require.NoError(t, err, src)
		doc, err := Parse(got, Bounds{})
		require.NoError(t, err)
		want := map[string]any{"a": map[string]any{"b": map[string]any{"c": "d", "args": []any{"--data", long}}}}
		require.Equal(t, want, doc.Root.Value(), "%s", got)
		got, err = Unset(got, []string{"a", "b", "c"}, Bounds{})
		require.NoError(t, err, src)
		doc, err = Parse(got, Bounds{})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"args": []any{"--data", long}}, doc.Root.Get("a").Get("b").Value(), "%s", got)
	}
}
