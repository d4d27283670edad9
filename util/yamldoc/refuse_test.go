package yamldoc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yaml, want string }{
		"key twice":               {"a: 1\nb:\n  c: 1\n  c: 2", `line 4, column 3: this key is already in line 3: "c"`},
		"key twice in brackets":   {"{a: 1, 'a': 2}", `line 1, column 8: this key is already in line 1: "a"`},
		"merge key":               {"a: &x {}\nb:\n  <<: *x", "line 3, column 3: merge keys (<<) are not supported; write the keys out"},
		"unknown tag":             {"a: !!python/object x", "line 1, column 4: this tag is not supported: !!python/object"},
		"tag that does not fit":   {"a: !!int x", "line 1, column 10: the tag does not fit this value"},
		"tag of a missing value":  {"a: !!int\nb: 1", "line 1, column 4: the value of this tag is missing: !!int"},
		"second document":         {"a: 1\n---\nb: 2", "line 2, column 1: a second document begins here; only one is allowed"},
		"not a number":            {"a: [.NaN]", "line 1, column 5: JSON has no infinity and no NaN; put the text in quotes"},
		"too large":               {"- 1e400", "line 1, column 3: the number is too large; put it in quotes if it is meant as text"},
		"alias in itself":         {"a: &x [1, *x]", "line 1, column 11: the alias stands within what it refers to: *x"},
		"anchor within its like":  {"a: &x\n  b: &x 1", "line 2, column 6: a value within the one of this anchor has the same anchor; give one of them another name: &x"},
		"tab in a tag":            {"a: !x\ty z", "line 1, column 4: this tag is not supported: !x\ty"},
		"wide blank line":         {"a: |\n  \n # b\n", "line 3, column 2: an empty line before this has more spaces than it; take them out"},
		"alias to nothing":        {"a: *x\nb: &x 1", "line 1, column 4: there is no anchor of this name before the alias: *x"},
		"not UTF-8":               {"a: é\nb: \xff", "line 2, column 4: the byte 0xFF is not UTF-8 text"},
		"NUL":                     {"a: \x00", "line 1, column 4: the control character U+0000 is not allowed; in double quotes it can be written as \\x00"},
		"tab as indentation":      {"a:\n\tb: 1", "line 2, column 2: a tab cannot stand before this; use spaces"},
		"two colons":              {"a: b: c", "line 1, column 4: a second 'key:' on one line; put the value in quotes, or begin a new line"},
		"text and a key":          {"a: b\n c: d", "line 1, column 4: a second 'key:' on one line; put the value in quotes, or begin a new line"},
		"swallowed by a dash":     {"a: b\n  - c: d", "line 2, column 6: text without quotes cannot contain ': ' or ' #'; check the indentation, or put the text in quotes"},
		"missing colon":           {"a: 1\nb\nc: 2", "line 2, column 1: a ':' is missing after this key, or the text belongs to the value before it and must be indented"},
		"too much indentation":    {"a: 1\n   b: 2", "line 1, column 4: a second 'key:' on one line; put the value in quotes, or begin a new line"},
		"too little indentation":  {"a:\n    b: 1\n  c: 2", "line 3, column 3: this begins in column 3, but the entries before it in column 1 or 5"},
		"list among keys":         {"a: 1\n- b", "line 2, column 1: a list entry where a key is expected; check the indentation"},
		"list on the key's line":  {"a: - b", "line 1, column 4: a list with dashes must begin on a new line"},
		"text behind quotes":      {"a: \"b\" c", "line 1, column 8: the value before this is complete; if both are one text, put all of it in quotes"},
		"a quote too late":        {"a: \"x\nb: \"y\"", "line 1, column 4: the quote that opens here is only closed in line 2"},
		"reserved":                {"a: @b", "line 1, column 4: a value cannot begin with @; put it in quotes"},
		"percent":                 {"a: %b", "line 1, column 4: a value cannot begin with %; put it in quotes"},
		"open quote":              {"a: 1\nb: 'x\n", "line 2, column 4: the quote ' is never closed"},
		"open bracket":            {"a: 1\nb: [1,\n 2", "line 2, column 4: the bracket [ is never closed"},
		"open brace":              {"a: {b: [1]", "line 1, column 4: the bracket { is never closed"},
		"missing comma":           {"[1, 'b' c]", "line 1, column 9: a ',' or the closing bracket is missing before this"},
		"two commas":              {"[1,, 2]", "line 1, column 4: there is no value before this; if it is text, put it in quotes"},
		"wrong bracket":           {"[1}", "line 1, column 1: the bracket [ is never closed"},
		"colon without space":     {"{a:1}", "line 1, column 3: within brackets, put a space after this ':', or put the whole text in quotes"},
		"key is a list":           {"[a]: 1", "line 1, column 4: a key must be a single word or text, not a list or a mapping"},
		"key over lines":          {"'a\n b': 1", "line 1, column 1: a key must be on one line; is something before it not closed, or indented wrongly?"},
		"key with an anchor":      {"&a b: 1", "line 1, column 4: an anchor or a tag for a whole list or mapping must stand on the line before it; on a key it is not supported"},
		"unknown escape":          {`a: "b\q"`, `line 1, column 6: \q is not an escape; for a backslash write \\ or use single quotes`},
		"half an escape":          {`"\x4"`, `line 1, column 2: \x needs 2 hexadecimal digits`},
		"half a pair":             {`"\ud83d"`, "line 1, column 2: the escape does not stand for a character"},
		"block with a bad header": {"a: |x\n  y", "line 1, column 4: " + badHeader},
		"block with two signs":    {"a: |+-\n  y", "line 1, column 4: " + badHeader},
		"block that steps back":   {"a: |\n    x\n  y", "line 3, column 3: a ':' is missing after this key, or the text belongs to the value before it and must be indented"},
		"unknown directive":       {"%TAG ! x\n---\na: 1", "line 1, column 1: directives other than %YAML are not supported"},
		"anchor without a name":   {"a: & b", "line 1, column 4: a name of letters and digits is missing after '&'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.yaml), Bounds{})
			require.EqualError(t, err, c.want)
			var e *Error
			require.ErrorAs(t, err, &e)
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	b := Bounds{Bytes: 60, Depth: 3, Aliases: 2, Nodes: 6}
	for yaml, want := range map[string]string{
		strings.Repeat("a", 61):                 "the text has 61 bytes, the limit is 60",
		"[[[1]]]":                               "",
		"[[[[1]]]]":                             "nested deeper than 3",
		"a:\n  b:\n    c:\n      d: 1":          "nested deeper than 3",
		"- - - - 1":                             "nested deeper than 3",
		"- &x [[1]]\n- [*x]":                    "nested deeper than 3, with what the alias stands for",
		"[&x 1, *x, *x]":                        "",
		"[&x 1, *x, *x, *x]":                    "more than 2 aliases",
		"[&x [1, 2], *x]":                       "more than 6 values, with what aliases stand for",
		"[1, 2, 3, 4, 5]":                       "",
		"[1, 2, 3, 4, 5, 6]":                    "more than 6 values, with what aliases stand for",
		"{a: , b: , c, d: 1, e: 2, f: {}}":      "more than 6 values, with what aliases stand for",
		"a:\nb:\nc:\nd:\ne:\nf:\n":              "more than 6 values, with what aliases stand for",
		"text: \"[[[[[[[[ {{{{{{ - - - - - -\"": "",
		"a: |\n  - - - - [[[[[\nb: ------":      "",
		"a: x\n  ---------- it's [[[ text":      "",
		"# - - - - - [[[[":                      "",
	} {
		_, err := Parse([]byte(yaml), b)
		if want == "" {
			require.NoError(t, err, yaml)
			continue
		}
		require.ErrorContains(t, err, want, yaml)
	}
}

// Brackets that are never closed take the library gigabytes, also where very many
// values are allowed.
func TestBracketsAreCountedFirst(t *testing.T) {
	t.Parallel()
	b := Bounds{Bytes: 64 << 20, Depth: 16, Nodes: 4 << 20}
	for _, text := range []string{strings.Repeat("[", 300_000), strings.Repeat("a: {", 10_000)} {
		prosetest.Error(t, guard(text, b))
	}
	require.NoError(t, guard(strings.Repeat("[]{}", 300_000), b))
}

// Each of these makes the library, or a reader that expands aliases, spend
// seconds or gigabytes.
func TestHostile(t *testing.T) {
	t.Parallel()
	const kb = 1 << 10
	rep := func(s string, bytes int) string { return strings.Repeat(s, bytes/len(s)) }
	for name, yaml := range map[string]string{
		"brackets":                 rep("[", 900*kb),
		"brackets behind a tag":    "!t " + rep("[", 900*kb),
		"brackets behind a block":  "a: |\n  x\nb: " + rep("{", 900*kb),
		"braces with keys":         rep("{a: ", 900*kb),
		"dashes":                   rep("- ", 900*kb),
		"question marks":           rep("? ", 900*kb),
		"tabs in quotes":           `"` + rep("\t", 1000*kb) + `"`,
		"blank lines in a literal": "a: |\n  b" + rep("\n", 1000*kb),
		"less-than signs":          rep("<", 1000*kb),
		"aliases of aliases":       bomb(),
		"commas":                   "[" + rep(",", 1000*kb),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := Parse([]byte(yaml), Bounds{})
			require.Error(t, err)
			// Milliseconds; a minute only tells them from what never ends.
			require.Less(t, time.Since(start), time.Minute)
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1)
	}
	return b.String()
}

// The library's parser alone needs minutes and gigabytes for these.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	var wide, below, missing, deep strings.Builder
	below.WriteString("a:\n")
	for i := range 98 {
		fmt.Fprintf(&deep, "%s%s:\n", strings.Repeat(" ", i), strings.Repeat("k", 5000))
	}
	for i := range 60_000 {
		fmt.Fprintf(&wide, "key%d: v\n", i)
		fmt.Fprintf(&below, " k%d: v\n", i)
		missing.WriteString("-\n")
		if i < 4000 {
			fmt.Fprintf(&deep, "%sk%d: v\n", strings.Repeat(" ", 98), i)
		}
	}
	for name, text := range map[string]string{
		"at the root": wide.String(), "below a key": below.String(), "missing values": missing.String(), "below long keys": deep.String(),
	} {
		start := time.Now()
		_, err := Parse([]byte(text), Bounds{})
		require.NoError(t, err, name)
		require.Less(t, time.Since(start), time.Minute, name)
	}
}
