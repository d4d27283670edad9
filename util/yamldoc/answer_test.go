package yamldoc

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/fuzztest"
)

// The meaning of a '#' in an answer: text, a comment, or an ambiguity.
func TestParseAnswer(t *testing.T) {
	t.Parallel()
	const ask = "this '#' may start a text or a comment; put the text in quotes, or a space after the '#' of a comment"
	for name, c := range map[string]struct {
		text string
		want any
		err  string
	}{
		"an issue":                     {"a: Fixes #42 and #43, see C# and F#\nb: 1", m{"a": "Fixes #42 and #43, see C# and F#", "b": int64(1)}, ""},
		"at the beginning":             {"a: #42\nb:\n- #43\n- x", m{"a": "#42", "b": []any{"#43", "x"}}, ""},
		"CR LF":                        {"a: Fixes #42\r\nb: #1\r\n", m{"a": "Fixes #42", "b": "#1"}, ""},
		"a tab before it":              {"a: x\t#y", m{"a": "x\t#y"}, ""},
		"in brackets":                  {"a: [#42, see #43, 'x']\nb: {c: #1}", m{"a": []any{"#42", "see #43", "x"}, "b": m{"c": "#1"}}, ""},
		"a heading":                    {"a: ## Done", m{"a": "## Done"}, ""},
		"a text that goes on":          {"a: Fixes #42 and\n  what follows #43", m{"a": "Fixes #42 and what follows #43"}, ""},
		"a key":                        {"a #1: x", m{"a #1": "x"}, ""},
		"in quotes":                    {"a: 'x #1'\nb: \"y #2 \\u0023\"", m{"a": "x #1", "b": "y #2 #"}, ""},
		"in a block":                   {"a: |\n  #1\n  x #2\nb: >\n  #3\n  y #4", m{"a": "#1\nx #2\n", "b": "#3 y #4\n"}, ""},
		"a comment":                    {"# one\na: x # two\n# three\nb: 1  #\n", m{"a": "x", "b": int64(1)}, ""},
		"a comment behind quotes":      {"a: 'x' #two\nb: [1] #three\nc: {} #four", m{"a": "x", "b": []any{int64(1)}, "c": m{}}, ""},
		"a comment before all":         {"#one\na: x", m{"a": "x"}, ""},
		"a character of ours":          {"a: \ue000 #1", m{"a": "\ue000 #1"}, ""},
		"quotes within a text":         {"a: he said \"yes\" #42", nil, ask},
		"brackets within a text":       {"a: see [1] #42", nil, ask},
		"a line below":                 {"a: Fixes\n  #42 and more", nil, ask},
		"a value below":                {"a:\n  #42", nil, ask},
		"an entry that is commented":   {"a:\n- x\n#- y", nil, ask},
		"a comment in a block's first": {"a: | #x\n  y", nil, "the text starts on the next line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := ParseAnswer([]byte(c.text), Bounds{})
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, doc.Root.Value())
		})
	}
}

// FuzzParseAnswer checks that without a '#' an answer parses like any YAML, and that no placeholder remains.
func FuzzParseAnswer(f *testing.F) {
	for _, s := range []string{"a: b #1", "a: #1", "- #1\n  #2", "a: |\n #x", "a: [#1, 'b #2' #3]", "#", "a: '#\n #b'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzztest.Bounded(t)()
		got, err := ParseAnswer([]byte(text), Bounds{})
		if !strings.Contains(text, "#") {
			want, wrong := Parse([]byte(text), Bounds{})
			require.Equal(t, wrong, err)
			if err == nil {
				require.Equal(t, want.Root.Value(), got.Root.Value())
			}
		}
		if err == nil && !strings.Contains(text, "\ue000") && !strings.Contains(text, `\`) {
			said, _ := json.Marshal(got.Root.Value())
			require.NotContains(t, string(said), "\ue000")
		}
	})
}
