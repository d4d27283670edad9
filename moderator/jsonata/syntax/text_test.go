package syntax

import (
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": `""`, "a": `"a"`, `"\`: `"\"\\"`, "\n\r\t\b\f": `"\n\r\t\b\f"`, "\x00\x0b\x1f\x20\x7f": `"\u0000\u000b\u001f ` + "\x7f" + `"`, "é€😀/": `"é€😀/"`,
	} {
		assert.Equal(t, want, Quote(text))
		assert.Equal(t, "x"+want, string(AppendQuoted([]byte("x"), text)))
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"abcd", 0, "…"},
		{"aéb", 3, "aé…"},
		{"aéb", 2, "a…"},
		{"é", 1, "…"},
		{"€€", 5, "€…"},
		{"€€", 4, "€…"},
		{"\x80\x80", 1, "…"},
	} {
		assert.Equal(t, c.want, Shorten(c.text, c.most), "%s %d", c.text, c.most)
	}
}

func TestParseSignature(t *testing.T) {
	t.Parallel()
	const anything, value = "asnblomf", "asnblom"
	for _, c := range []struct {
		text string
		want []Param
		at   int
		code string
	}{
		{"", nil, 0, ""},
		{":s", nil, 0, ""},
		{"s", []Param{{Kinds: "sm"}}, 0, ""},
		{"snblo", []Param{{Kinds: "sm"}, {Kinds: "nm"}, {Kinds: "bm"}, {Kinds: "lm"}, {Kinds: "om"}}, 0, ""},
		{"s n:b", []Param{{Kinds: "sm"}, {Kinds: "nm"}}, 0, ""},
		{"x", []Param{{Kinds: anything}}, 0, ""},
		{"j", []Param{{Kinds: value}}, 0, ""},
		{"a", []Param{{Kinds: anything, Array: true}}, 0, ""},
		{"f", []Param{{Kinds: "f"}}, 0, ""},
		{"(sn)", []Param{{Kinds: "snm"}}, 0, ""},
		{"(sa)n", []Param{{Kinds: "sam"}, {Kinds: "nm"}}, 0, ""},
		{"s?n-b+", []Param{{Kinds: "sm", Optional: true}, {Kinds: "nm", Context: true}, {Kinds: "bm", Many: true}}, 0, ""},
		{"s-?", []Param{{Kinds: "sm", Optional: true, Context: true}}, 0, ""},
		{"a<s>n", []Param{{Kinds: anything, Array: true, Item: 's'}, {Kinds: "nm"}}, 0, ""},
		{"a<s>?", []Param{{Kinds: anything, Array: true, Item: 's', Optional: true}}, 0, ""},
		{"a<a<n>>", []Param{{Kinds: anything, Array: true, Item: 'a'}}, 0, ""},
		{"f<n:n>s", []Param{{Kinds: "f"}, {Kinds: "sm"}}, 0, ""},
		{"?", nil, 0, "S0401"},
		{"-", nil, 0, "S0401"},
		{"+", nil, 0, "S0401"},
		{"<n>", nil, 0, "S0401"},
		{"sq", nil, 1, "S0401"},
		{"s<n>", nil, 1, "S0401"},
		{"j<n>", nil, 1, "S0401"},
		{"a<>", nil, 1, "S0401"},
		{"a<n", nil, 1, "S0401"},
		{"sn(", nil, 2, "S0402"},
		{"()", nil, 0, "S0402"},
		{"s(n", nil, 1, "S0402"},
		{"(a<n>)", nil, 0, "S0402"},
	} {
		params, at, code := ParseSignature(c.text)
		assert.Equal(t, c.want, params, c.text)
		assert.Equal(t, c.at, at, c.text)
		assert.Equal(t, c.code, code, c.text)
	}
}

func TestSignatureOfLambda(t *testing.T) {
	t.Parallel()
	root, _, err := Parse("function($x, $y)<a<s>n?:b> {1}")
	require.NoError(t, err)
	assert.Equal(t, []Param{{Kinds: "asnblomf", Array: true, Item: 's'}, {Kinds: "nm", Optional: true}}, root.(*Lambda).Signature)
	root, _, err = Parse("function($x){1}")
	require.NoError(t, err)
	assert.Nil(t, root.(*Lambda).Signature)
}

// The first match of a regular expression, the next match after a position, and the cost per character.
func TestRegexes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, text   string
		first, next []int
		cost        int
	}{
		{"/b+/", "abb", []int{1, 3}, []int{0, 3, 1, 3}, 1},
		{"/B/", "abb", nil, nil, 1},
		{"/B/i", "abb", []int{1, 2}, []int{0, 2, 1, 2}, 1},
		{"/^b/", "a\nb", nil, nil, 1},
		{"/^b/m", "a\nb", []int{2, 3}, []int{0, 3, 2, 3}, 1},
		{"/^a/", "a\nb", []int{0, 1}, nil, 1},
		{"/(b)(c)?/", "\nbb", []int{1, 2, 1, 2, -1, -1}, []int{0, 2, 1, 2, 1, 2, -1, -1}, 2},
		{"/A$/mi", "xa\nb", []int{1, 2}, []int{0, 2, 1, 2}, 1},
		{`/\//`, "a/b", []int{1, 2}, []int{0, 2, 1, 2}, 1},
		{"/[/]/", "a/b", []int{1, 2}, []int{0, 2, 1, 2}, 1},
		{"/" + strings.Repeat("a", 80) + "/", "b", nil, nil, 11},
		{"/a{80}/", "b", nil, nil, 21},
	} {
		root, _, err := Parse(c.src)
		require.NoError(t, err, c.src)
		r := root.(*Pattern).Regex
		assert.Equal(t, c.first, r.First.FindStringSubmatchIndex(c.text), c.src)
		assert.Equal(t, c.cost, r.Cost, c.src)
		if c.first != nil && c.first[0] == 0 { // the position is after a character
			continue
		}
		assert.Equal(t, c.next, r.Next.FindStringSubmatchIndex(c.text), c.src)
	}
}

// The size estimated before compilation never exceeds the bound by more than one.
func TestRegexSize(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]int{
		"a": 1, "abc": 3, "a*": 2, "a|bc": 4, "[a-z]": 1, "a{3}": 8, "a{2,5}": 10, "a{2,}": 6, "(a)": 2, "(?:abc){3}": 16,
		"(?:a{50}){20}": 101, "": 1, "[acegikmoq]": 3,
	} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		require.NoError(t, err, pattern)
		assert.Equal(t, want, regexSize(tree, 100), pattern)
	}
}
