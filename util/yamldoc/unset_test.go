package yamldoc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key without a value receives entries, however long their names are.
func TestSetBelowNull(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", "default", "claude-sonnet", "qwen3:8b", "gpt-4.1", "@x", "1", "yes", "a b", "ä", "a: b", "2024-01-01", "*", "'"} {
		for src, want := range map[string]string{
			"a:\n": "a:\n  ", "a: # c\nz: 1\n": "a:\n  # c\n  ", "z: 1\na: ~\n": "z: 1\na:\n  ", "z:\n  a:\nb: 1\n": "z:\n  a:\n    ",
		} {
			path := []string{"a", key, "m"}
			if strings.HasPrefix(src, "z:\n") {
				path = append([]string{"z"}, path...)
			}
			text, err := Set([]byte(src), path, "v", Bounds{})
			require.NoError(t, err, "%q in %q", key, src)
			require.True(t, strings.HasPrefix(string(text), want), "%q", text)
			require.NotEqual(t, ' ', rune(text[len(want)]), "%q", text)
		}
	}
}

// The entry is removed with its lines; comments of others stay.
func TestUnset(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, before, after string }{
		"the first":         {"a", "a: 1\n# of b\nb: 2\n", "# of b\nb: 2\n"},
		"the last":          {"b", "a: 1 # one\nb: 2\n", "a: 1 # one\n"},
		"the only one":      {"a", "# all\na: 1\n", "# all\n"},
		"a block":           {"a", "a:\n  x: 1\n\n  y: 2\n\n# of b\nb: 2\n", "\n# of b\nb: 2\n"},
		"in a block":        {"a.x", "a:\n  x: 1\n  y: 2 # two\nb: 2\n", "a:\n  y: 2 # two\nb: 2\n"},
		"its parent":        {"a.x.z", "a:\n  x:\n    z: 1\nb: 2\n", "b: 2\n"},
		"a list":            {"a", "a:\n- 1\n- 2\nb: 2\n", "b: 2\n"},
		"a text of lines":   {"a", "a: |\n  # no comment\n  x\nb: 2\n", "b: 2\n"},
		"in one line":       {"a.x", "# all\na: { x: 1, z: 2 } # one\nb: 2\n", "# all\na: {z: 2} # one\nb: 2\n"},
		"a line of its own": {"a", "a: { x: 1, y: 2 }\nb: 2\n", "b: 2\n"},
		"a number":          {"1", "1.0: a\nb: 2\n", "b: 2\n"},
		"over lines":        {"a", "a: { x: 1,\n  y: 2 }\nb: 2\n", "b: 2\n"},
	} {
		text, err := Unset([]byte(c.before), strings.Split(c.path, "."), Bounds{})
		require.NoError(t, err, name)
		require.Equal(t, c.after, string(text), name)
	}
	for path, want := range map[string]error{"c": ErrNoKey, "a.b": ErrNoKey} {
		_, err := Unset([]byte("a: 1\n"), strings.Split(path, "."), Bounds{})
		require.ErrorIs(t, err, want)
	}
	for src, key := range map[string]string{"{a: 1, b: 2}\n": "a", "a: 1\rb: 2\n": "b", "a: 1\r\rb: 2\r": "b"} {
		_, err := Unset([]byte(src), []string{key}, Bounds{})
		require.ErrorIs(t, err, ErrUneditable, "%q", src)
	}
}
