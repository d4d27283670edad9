package yamltext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamltext"
)

var long = strings.Repeat("words that go on and on, ", 12) + "to the end"

var awkward = []string{
	"", "plain", "two words", "yes", "null", "0123", "1e3", "- x", "a: b", "# c", "x # y", " lead", "trail ", "\ttab", "a\tb",
	"line\n", "one\ntwo", "one\ntwo\n", "one\ntwo\n\n", "\nfirst empty", "  indented\nblock", "with  \nspaces", "cr\r\nlf", "\x00\x1b[31m",
	"---", "...", "? x", "!tag", "&a", "*a", "%d", "@x", "`x`", "\"q\"", "'q'", "don't, really", "{{{x}}}", "é日本\u2028x", "a\u0085b", "~", "=", "<<",
	long, long + " ", " " + long, "# " + long, strings.Repeat("x", 300), long + "  " + long, "a\n  b\n\n c\n\n\n", "\u00a0x", "\x7f", "\ufeff\U000e0001", "x\u3000y\nz",
}

func TestReadsBack(t *testing.T) {
	t.Parallel()
	for _, s := range awkward {
		requireReadsBack(t, s)
		requireReadsBack(t, map[string]any{"k": s, "l": []any{s, map[string]any{"m": s, "n": []any{s}}, []any{s, []any{s}}}})
		if s != "" {
			requireReadsBack(t, map[string]any{s: []any{}, "deep": map[string]any{"deeper": map[string]any{s: s}}})
		}
	}
	requireReadsBack(t, map[string]any{"a": nil, "b": true, "c": int64(3), "d": 1.5, "e": map[string]any{}, "f": []any{[]any{int64(-1)}, []any{}}, "g": 1e300, "h": 1e-7})
	requireReadsBack(t, []any{})
	requireReadsBack(t, nil)
}

func FuzzReadsBack(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		requireReadsBack(t, map[string]any{"k": s, "l": []any{s}, "m": map[string]any{"n": map[string]any{"o": s}}})
	})
}

func requireReadsBack(t *testing.T, v any) {
	t.Helper()
	text, err := yamltext.Marshal(v)
	require.NoError(t, err)
	doc, err := yamldoc.Parse(text, yamldoc.Bounds{})
	require.NoError(t, err, "%s", text)
	require.Equal(t, v, doc.Root.Value(), "%s", text)
}

func TestWhatItLooksLike(t *testing.T) {
	t.Parallel()
	text, err := yamltext.Marshal(yamltext.Map{
		{Key: "name", Value: "x"},
		{Key: "short", Value: yamltext.Map{{Key: "$status", Value: "ready"}, {Key: "count", Value: 1}, {Key: "l", Value: yamltext.List{"a, b", "c"}}}, Blank: true},
		{Key: "nested", Value: yamltext.Map{{Key: "a", Value: map[string]any{"type": "string"}}}},
		{Key: "block", Value: "one\ntwo\n"},
		{Key: "long", Value: strings.Repeat("word: ", 20) + "end"},
		{Key: "list", Value: yamltext.List{map[string]any{"k": map[string]any{}}, "x"}},
		{Key: "total", Value: json.Number("12")},
	})
	require.NoError(t, err)
	require.Equal(t, `name: x

short: { $status: ready, count: 1, l: ["a, b", c] }
nested:
  a: { type: string }
block: |
  one
  two
long: >-
  word: word: word: word: word: word: word: word: word: word: word: word: word: word: word: word:
  word: word: word: word: end
list:
  - k: {}
  - x
total: 12
`, string(text))
}

func TestRejectsNonValue(t *testing.T) {
	t.Parallel()
	_, err := yamltext.Marshal(yamltext.Map{{Key: "k", Value: struct{}{}}})
	prosetest.Error(t, err)
}
