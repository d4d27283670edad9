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
	for name, c := range map[string]struct{ yaml string }{
		"key twice":               {"a: 1\nb:\n  c: 1\n  c: 2"},
		"key twice in brackets":   {"{a: 1, 'a': 2}"},
		"merge key":               {"a: &x {}\nb:\n  <<: *x"},
		"unknown tag":             {"a: !!python/object x"},
		"tag that does not fit":   {"a: !!int x"},
		"tag of a missing value":  {"a: !!int\nb: 1"},
		"second document":         {"a: 1\n---\nb: 2"},
		"not a number":            {"a: [.NaN]"},
		"too large":               {"- 1e400"},
		"alias in itself":         {"a: &x [1, *x]"},
		"anchor within its like":  {"a: &x\n  b: &x 1"},
		"tab in a tag":            {"a: !x\ty z"},
		"wide blank line":         {"a: |\n  \n # b\n"},
		"alias to nothing":        {"a: *x\nb: &x 1"},
		"not UTF-8":               {"a: é\nb: \xff"},
		"NUL":                     {"a: \x00"},
		"tab as indentation":      {"a:\n\tb: 1"},
		"two colons":              {"a: b: c"},
		"text and a key":          {"a: b\n c: d"},
		"swallowed by a dash":     {"a: b\n  - c: d"},
		"missing colon":           {"a: 1\nb\nc: 2"},
		"too much indentation":    {"a: 1\n   b: 2"},
		"too little indentation":  {"a:\n    b: 1\n  c: 2"},
		"list among keys":         {"a: 1\n- b"},
		"list on the key's line":  {"a: - b"},
		"text behind quotes":      {"a: \"b\" c"},
		"a quote too late":        {"a: \"x\nb: \"y\""},
		"reserved":                {"a: @b"},
		"percent":                 {"a: %b"},
		"open quote":              {"a: 1\nb: 'x\n"},
		"open bracket":            {"a: 1\nb: [1,\n 2"},
		"open brace":              {"a: {b: [1]"},
		"missing comma":           {"[1, 'b' c]"},
		"two commas":              {"[1,, 2]"},
		"wrong bracket":           {"[1}"},
		"colon without space":     {"{a:1}"},
		"key is a list":           {"[a]: 1"},
		"key over lines":          {"'a\n b': 1"},
		"key with an anchor":      {"&a b: 1"},
		"unknown escape":          {`a: "b\q"`},
		"half an escape":          {`"\x4"`},
		"half a pair":             {`"\ud83d"`},
		"block with a bad header": {"a: |x\n  y"},
		"block with two signs":    {"a: |+-\n  y"},
		"block that steps back":   {"a: |\n    x\n  y"},
		"unknown directive":       {"%TAG ! x\n---\na: 1"},
		"anchor without a name":   {"a: & b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.yaml), Bounds{})
			prosetest.Error(t, err)
			var e *Error
			require.ErrorAs(t, err, &e)
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	b := Bounds{Bytes: 60, Depth: 3, Aliases: 2, Nodes: 6}
	for yaml, fits := range map[string]bool{
		strings.Repeat("a", 61):                 false,
		"[[[1]]]":                               true,
		"[[[[1]]]]":                             false,
		"a:\n  b:\n    c:\n      d: 1":          false,
		"- - - - 1":                             false,
		"- &x [[1]]\n- [*x]":                    false,
		"[&x 1, *x, *x]":                        true,
		"[&x 1, *x, *x, *x]":                    false,
		"[&x [1, 2], *x]":                       false,
		"[1, 2, 3, 4, 5]":                       true,
		"[1, 2, 3, 4, 5, 6]":                    false,
		"{a: , b: , c, d: 1, e: 2, f: {}}":      false,
		"a:\nb:\nc:\nd:\ne:\nf:\n":              false,
		"text: \"[[[[[[[[ {{{{{{ - - - - - -\"": true,
		"a: |\n  - - - - [[[[[\nb: ------":      true,
		"a: x\n  ---------- it's [[[ text":      true,
		"# - - - - - [[[[":                      true,
	} {
		_, err := Parse([]byte(yaml), b)
		if fits {
			require.NoError(t, err, yaml)
			continue
		}
		prosetest.Error(t, err, "%q", yaml)
	}
}

// Brackets that are never closed cost the library gigabytes, even if very many values are allowed.
func TestBracketsAreCountedFirst(t *testing.T) {
	t.Parallel()
	b := Bounds{Bytes: 64 << 20, Depth: 16, Nodes: 4 << 20}
	for _, text := range []string{strings.Repeat("[", 300_000), strings.Repeat("a: {", 10_000)} {
		prosetest.Error(t, guard(text, b))
	}
	require.NoError(t, guard(strings.Repeat("[]{}", 300_000), b))
}

// Each of these makes the library, or a parser that expands aliases, use seconds or gigabytes.
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
			// It takes milliseconds; a minute only rules out a hang.
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

// The library's parser alone would need minutes and gigabytes for these.
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
