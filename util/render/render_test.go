package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// TestYAMLReadsBack checks that YAML output parses to the same value.
func TestYAMLReadsBack(t *testing.T) {
	t.Parallel()
	for _, s := range awkward {
		requireReadsBack(t, s)
		requireReadsBack(t, map[string]any{"k": s, "l": []any{s, map[string]any{"m": s}}})
		if s != "" {
			requireReadsBack(t, map[string]any{s: []any{}})
		}
	}
	requireReadsBack(t, map[string]any{"a": nil, "b": true, "c": int64(3), "d": 1.5, "e": map[string]any{}, "f": []any{[]any{int64(1)}, []any{}}})
	requireReadsBack(t, []any{})
}

var awkward = []string{
	"", "plain", "two words", "yes", "null", "0123", "1e3", "- x", "a: b", "# c", "x # y", " lead", "trail ", "\ttab", "a\tb",
	"line\n", "one\ntwo", "one\ntwo\n", "one\ntwo\n\n", "\nfirst empty", "  indented\nblock", "with  \nspaces", "cr\r\nlf", "\x00\x1b[31m",
	"---", "...", "? x", "!tag", "&a", "*a", "%d", "@x", "`x`", "\"q\"", "'q'", "{{{x}}}", "é日本\u2028x", "a\u0085b", "~", "=", "<<",
}

func FuzzYAMLReadsBack(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean, err := json.Marshal(s) // results are valid UTF-8
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(clean, &s))
		requireReadsBack(t, map[string]any{"k": s})
	})
}

func requireReadsBack(t *testing.T, v any) {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, Print(&buf, YAML, v, nil))
	doc, err := yamldoc.Parse(buf.Bytes(), yamldoc.Bounds{})
	require.NoError(t, err, "%q", buf.String())
	require.Equal(t, v, doc.Root.Value(), "%q", buf.String())
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"json", "yaml", "text", "raw-json", "raw-yaml"} {
		_, err := ParseFormat(name)
		require.NoError(t, err, name)
	}
	for _, name := range []string{"", "xml", "raw-text", "JSON"} {
		_, err := ParseFormat(name)
		require.Error(t, err, name)
	}
}

// A list has the same text whether it is printed at once or value by value, and values are printed
// immediately.
func TestPrintList(t *testing.T) {
	t.Parallel()
	for _, f := range []Format{JSON, YAML} {
		for n := range 3 {
			values := []map[string]any{{"a": "<1>", "b": []int{1, 2}}, {"a": "two\nlines", "c": nil}}[:n]
			var whole, streamed bytes.Buffer
			require.NoError(t, Print(&whole, f, values, nil))
			require.NoError(t, PrintList(t.Context(), &streamed, f, slices.Values(values), nil))
			require.Equal(t, whole.String(), streamed.String(), "%s of %d", f, n)
		}
		var out bytes.Buffer
		held := 0
		require.NoError(t, PrintList(t.Context(), &out, f, func(yield func(string) bool) {
			for given := 0; given < 1<<20; given += 1000 {
				held = max(held, given-out.Len())
				yield(strings.Repeat("x", 1000))
			}
		}, nil))
		require.Less(t, held, 100_000)
	}
}

// An interrupted list isn't a valid list, with or without values.
func TestPrintListCutShort(t *testing.T) {
	t.Parallel()
	for given, want := range []string{"", `["x"`} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out bytes.Buffer
		stop := errors.New("stopped")
		err := PrintList(ctx, &out, JSON, func(yield func(string) bool) {
			for range given {
				yield("x")
			}
			cancel(stop)
		}, nil)
		require.ErrorIs(t, err, stop)
		require.Equal(t, want, out.String())
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", 5 << 50: "5120.0 TiB"} {
		require.Equal(t, want, Size(n))
	}
}
