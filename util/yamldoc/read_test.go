package yamldoc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type (
	m = map[string]any
	l = []any
)

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		yaml string
		want any
	}{
		"empty":                       {"", nil},
		"only white space":            {" \n\n", nil},
		"byte order mark":             {"\ufeffa: 1", m{"a": int64(1)}},
		"CR LF":                       {"a: x\r\nb: |\r\n  y\r\n  z\r\n", m{"a": "x", "b": "y\nz\n"}},
		"document marks":              {"%YAML 1.2\n---\na: 1\n...\n# end\n", m{"a": int64(1)}},
		"a value on the first line":   {"--- [1]", l{int64(1)}},
		"nested":                      {"a:\n  b:\n  - 1\n  - c: 2\n    d: 3\n  -\n    - 4\n", m{"a": m{"b": l{int64(1), m{"c": int64(2), "d": int64(3)}, l{int64(4)}}}}},
		"compact":                     {"- - 1\n  - 2\n- a: 1\n  b:\n  - 2", l{l{int64(1), int64(2)}, m{"a": int64(1), "b": l{int64(2)}}}},
		"empty values":                {"a:\nb:\n- \n- x\nc: ~", m{"a": nil, "b": l{nil, "x"}, "c": nil}},
		"flow":                        {"{a: [1, {b: c}], \"d\":2, e: , f}", m{"a": l{int64(1), m{"b": "c"}}, "d": int64(2), "e": nil, "f": nil}},
		"flow over lines":             {"a: [\n  1, # one\n  2\n]\nb: {\n  c: d\n  }", m{"a": l{int64(1), int64(2)}, "b": m{"c": "d"}}},
		"flow pairs":                  {"[a: 1, {b: 2}]", l{m{"a": int64(1)}, m{"b": int64(2)}}},
		"a URL is text":               {"{a: http://x/y, b: 12:30}", m{"a": "http://x/y", "b": "12:30"}},
		"a tab within text stays":     {"a: x\ty\nb:\t1", m{"a": "x\ty", "b": int64(1)}},
		"text over lines":             {"a: one\n  two\n\n  three\nb: 1", m{"a": "one two\nthree", "b": int64(1)}},
		"text over lines with a dash": {"a: b\n  - c\nd: 1", m{"a": "b - c", "d": int64(1)}},
		"single quotes":               {"'it''s\n  # no comment'", "it's # no comment"},
		"double quotes":               {`"\x41\u00e9\U0001F600\ud83d\ude00\t\"\/\\ \e\0"`, "Aé😀😀\t\"/\\ \x1b\x00"},
		"escaped line end":            {"\"a \\\n   b\\n\\\n   c\n\n   d\"", "a b\nc\nd"},
		"trailing space in quotes":    {"\"a\\ \n  b\"", "a  b"},
		"literal":                     {"a: |\n  x\n   y\n\n  z\n\n\nb: 1", m{"a": "x\n y\n\nz\n", "b": int64(1)}},
		"literal, stripped":           {"- |-\n  x\n\n- 1", l{"x", int64(1)}},
		"literal, kept":               {"a: |+\n  x\n\nb: 1", m{"a": "x\n\n", "b": int64(1)}},
		"literal, indented":           {"a:\n  b: |2\n      x\n     y\n", m{"a": m{"b": "  x\n y\n"}}},
		"literal with a comment":      {"a: | # why\n  # text\nb: 1", m{"a": "# text\n", "b": int64(1)}},
		"literal with tabs":           {"a: |\n  x\n  \ty\n  \t\n", m{"a": "x\n\ty\n\t\n"}},
		"literal without line end":    {"a: |\n  x", m{"a": "x\n"}},
		"literal with brackets":       {"a: |\n  [[[ {{{ \"\n  '", m{"a": "[[[ {{{ \"\n'\n"}},
		"folded":                      {"a: >\n  x\n  y\n\n  z\n   w\n  v\n", m{"a": "x y\nz\n w\nv\n"}},
		"folded, blank lines first":   {"a: >-\n\n\n  x\n", m{"a": "\n\nx"}},
		"aliases":                     {"a: &x {k: [1]}\nb: *x\nc: [*x]", m{"a": m{"k": l{int64(1)}}, "b": m{"k": l{int64(1)}}, "c": l{m{"k": l{int64(1)}}}}},
		"an anchor on a list":         {"a: &x\n- 1\nb: *x", m{"a": l{int64(1)}, "b": l{int64(1)}}},
		"an anchor without a value":   {"- &x\n- *x", l{nil, nil}},
		"core tags":                   {"a: !!str 1\nb: !!int \"2\"\nc: !!float 3\nd: !!null\ne: ! 4\nf: !!seq []", m{"a": "1", "b": int64(2), "c": int64(3), "d": nil, "e": "4", "f": l{}}},
		"long keys":                   {"? a\n: 1\n? b\n? 'c d'\n: - 2", m{"a": int64(1), "b": nil, "c d": l{int64(2)}}},
		"quoted merge key":            {"\"<<\": 1", m{"<<": int64(1)}},
		"numbers":                     {"[0123, 1e3, 0x1f, -7, 9007199254740991, 9007199254740992, 1.50, 0xfffffffffffffffff]", l{int64(123), int64(1000), int64(31), int64(-7), int64(1<<53 - 1), float64(1 << 53), 1.5, 295147905179352830000.0}},
		"no numbers":                  {"[1_000, 0b1, 0X1, 1e, +, ., -., 1.2.3, 0o8, 1:30, 0x, 1-2]", l{"1_000", "0b1", "0X1", "1e", "+", ".", "-.", "1.2.3", "0o8", "1:30", "0x", "1-2"}},
		"not JSON, but quoted":        {"'.inf'", ".inf"},
		"Unicode":                     {"ключ: 值 # é", m{"ключ": "值"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := Parse([]byte(c.yaml), Bounds{})
			require.NoError(t, err)
			require.Equal(t, c.want, doc.Root.Value())
		})
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	src := "# é\n\"ключ\":\t !include 'a.md'\nlist:\n- {x: 1.0}\n- &a !t\n  b: |\n    text\n- *a\n"
	doc, err := Parse([]byte(src), Bounds{})
	require.NoError(t, err)

	first := doc.Root.Entries[0]
	require.Equal(t, Pos{2, 1}, first.Pos)
	require.Equal(t, Pos{2, 19}, first.Value.Pos)
	require.Equal(t, "!include", first.Value.Tag)
	require.Equal(t, "a.md", first.Value.Scalar)
	require.Equal(t, "\"ключ\":\t !include 'a.md'", Line([]byte(src), 2))
	require.Empty(t, Line([]byte(src), 99))

	list := doc.Root.Get("list")
	require.Equal(t, Sequence, list.Kind)
	require.Equal(t, Pos{4, 1}, list.Pos)
	x := list.Items[0].Get("x")
	require.Equal(t, Pos{4, 7}, x.Pos)
	require.Equal(t, "1.0", x.Text)
	require.Equal(t, int64(1), x.Scalar)
	require.Equal(t, "!t", list.Items[1].Tag)
	require.Equal(t, Pos{6, 6}, list.Items[1].Get("b").Pos)
	require.Equal(t, Pos{8, 3}, list.Items[2].Pos, "an alias is where it stands")
	require.Nil(t, doc.Root.Get("none"))
}

func TestKeysAreTextLikeInTheOriginal(t *testing.T) {
	t.Parallel()
	doc, err := Parse([]byte("1.0: a\n0x10: b\nTrue: c\n~: d\n'1.0': e\n1e400: f\nyes: g"), Bounds{})
	require.NoError(t, err)
	var keys, texts []string
	for _, e := range doc.Root.Entries {
		keys, texts = append(keys, e.Key), append(texts, e.Text)
	}
	require.Equal(t, []string{"1", "16", "true", "", "1.0", "1e400", "yes"}, keys)
	require.Equal(t, []string{"1.0", "0x10", "True", "~", "1.0", "1e400", "yes"}, texts)
}
