package yamldoc

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/fuzztest"
)

// FuzzParse checks the guarantees for any text: no panic, bounded time, errors with a position in the text,
// JSON values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a: 1\nb: [x, {y: z}]\n- c", "a: |+\n  x\n\n# c\nb: >2-\n   y", "? a\n: - b\n&x !t c: *x", "\"\\ud83d\\x4\"\t'",
		"%YAML 1.2\n---\n<<: {}\n...\n", "- |\n\n- >2-\n   x\n", "!!str\n!<a> b", "{a:b, [c]: d", "\ufeff\r\n\x00", "a: &a [*a]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzztest.Bounded(t)()
		start := time.Now()
		doc, err := Parse([]byte(text), Bounds{Bytes: 64 << 10})
		require.Less(t, time.Since(start), time.Minute)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Positive(t, e.Pos.Line)
			require.Positive(t, e.Pos.Column)
			return
		}
		_, err = json.Marshal(doc.Root.Value())
		require.NoError(t, err)
	})
}

// FuzzJSON checks that JSON, which is YAML, keeps its value.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\ty",null,true]}`, `"\u00e9\ud83d\ude00\/"`, `[[],{},""]`, `{"":{"<<":1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzztest.Bounded(t)()
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		doc, err := Parse([]byte(text), Bounds{})
		if err != nil {
			return // bounds, duplicate keys, numbers beyond float64, lone surrogates
		}
		want, err := json.Marshal(v)
		require.NoError(t, err)
		got, err := json.Marshal(doc.Root.Value())
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	})
}
