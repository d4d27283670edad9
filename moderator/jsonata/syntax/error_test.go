package syntax

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// Syntax errors: the code, the position (offset, line, column) and the token.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, code            string
		offset, line, column int
		token                string
	}{
		{"", "S0207", 0, 1, 1, ""},
		{" ", "S0207", 1, 1, 2, ""},
		{"a = ", "S0207", 4, 1, 5, ""},
		{"a.", "S0207", 2, 1, 3, ""},
		{"(a", "S0203", 2, 1, 3, ")"},
		{"[a", "S0203", 2, 1, 3, "]"},
		{"{'a': 1", "S0203", 7, 1, 8, "}"},
		{"{'a'", "S0203", 4, 1, 5, ":"},
		{"{'a' 1}", "S0202", 5, 1, 6, ":"},
		{"[a; b]", "S0202", 2, 1, 3, "]"},
		{"(a b)", "S0202", 3, 1, 4, ")"},
		{"$f(a", "S0203", 4, 1, 5, ")"},
		{"$f(a;", "S0202", 4, 1, 5, ")"},
		{"a[0", "S0203", 3, 1, 4, "]"},
		{"a[0)", "S0202", 3, 1, 4, "]"},
		{"a^b", "S0202", 2, 1, 3, "("},
		{"a^(b", "S0203", 4, 1, 5, ")"},
		{"a{b}", "S0202", 3, 1, 4, ":"},
		{"a{b: c", "S0203", 6, 1, 7, "}"},
		{"a b", "S0201", 2, 1, 3, "b"},
		{"a 'x'", "S0201", 2, 1, 3, "x"},
		{"a 12", "S0201", 2, 1, 3, ""},
		{"a $x", "S0201", 2, 1, 3, "x"},
		{"a AND b", "S0201", 2, 1, 3, "AND"},
		{"a Or b", "S0201", 2, 1, 3, "Or"},
		{"a `and` b", "S0201", 2, 1, 3, "and"},
		{"not a", "S0201", 4, 1, 5, "a"},
		{"NOT a", "S0201", 4, 1, 5, "a"},
		{"not `a`", "S0201", 4, 1, 5, "a"},
		{"`not` a", "S0201", 6, 1, 7, "a"},
		{"a == b", "S0211", 3, 1, 4, "="},
		{"a && b", "S0211", 3, 1, 4, "&"},
		{"a => b", "S0211", 3, 1, 4, ">"},
		{"a || b", "S0201", 2, 1, 3, "|"},
		{"a | b", "S0201", 2, 1, 3, "|"},
		{"!a", "S0204", 0, 1, 1, "!"},
		{"a ! b", "S0204", 2, 1, 3, "!"},
		{"~a", "S0204", 0, 1, 1, "~"},
		{"a ~ b", "S0204", 2, 1, 3, "~"},
		{")", "S0211", 0, 1, 1, ")"},
		{"]", "S0211", 0, 1, 1, "]"},
		{":", "S0211", 0, 1, 1, ":"},
		{"a = = b", "S0211", 4, 1, 5, "="},
		{"+ 1", "S0211", 0, 1, 1, "+"},
		{"a & & b", "S0211", 4, 1, 5, "&"},
		{"a.)", "S0211", 2, 1, 3, ")"},
		{"'abc", "S0101", 0, 1, 1, "'"},
		{`"abc`, "S0101", 0, 1, 1, "\""},
		{`'abc\`, "S0101", 0, 1, 1, "'"},
		{`'a\xb'`, "S0103", 2, 1, 3, "x"},
		{`'it\'s'`, "S0103", 3, 1, 4, "'"},
		{`"it\'s"`, "S0103", 3, 1, 4, "'"},
		{`'\u12'`, "S0104", 1, 1, 2, "\\u"},
		{`'\u12G4'`, "S0104", 1, 1, 2, "\\u"},
		{`'\uD83D\u12'`, "S0104", 7, 1, 8, "\\u"},
		{"`abc", "S0105", 0, 1, 1, "`"},
		{"/* abc", "S0106", 0, 1, 1, "/*"},
		{"a /* b", "S0106", 2, 1, 3, "/*"},
		{"/*/", "S0106", 0, 1, 1, "/*"},
		{"1e999", "S0102", 0, 1, 1, "1e999"},
		{"007", "S0201", 1, 1, 2, ""},
		{"1.", "S0207", 2, 1, 3, ""},
		{".5", "S0211", 0, 1, 1, "."},
		{"1.a", "S0213", 0, 1, 1, "1"},
		{"a.1", "S0213", 2, 1, 3, "1"},
		{"a.true", "S0213", 2, 1, 3, "true"},
		{"a.null.b", "S0213", 2, 1, 3, "null"},
		{"true.a", "S0213", 0, 1, 1, "true"},
		{"a.1.b)", "S0201", 5, 1, 6, ")"},
		{"a.1.2", "S0213", 2, 1, 3, "1.2"},
		{"[1.]", "S0211", 3, 1, 4, "]"},
		{"a := 1", "S0212", 2, 1, 3, ":="},
		{"a.b := 1", "S0212", 4, 1, 5, ":="},
		{"$x[0] := 1", "S0212", 6, 1, 7, ":="},
		{"$x{a: b} := 1", "S0212", 9, 1, 10, ":="},
		{"1 := 2", "S0212", 2, 1, 3, ":="},
		{"$x{b: c}[0]", "S0209", 9, 1, 10, "["},
		{"a{b: c}{d: e}", "S0210", 7, 1, 8, "{"},
		{"$x{b: c}[0]{d: e}", "S0209", 9, 1, 10, "["},
		{"function(", "S0208", 9, 1, 10, ""},
		{"function(x){1}", "S0208", 9, 1, 10, "x"},
		{"function(1){1}", "S0208", 9, 1, 10, ""},
		{"function($x", "S0203", 11, 1, 12, ")"},
		{"function($x $y){1}", "S0202", 12, 1, 13, ")"},
		{"function()", "S0203", 9, 1, 10, "{"},
		{"function() 1", "S0202", 11, 1, 12, "{"},
		{"function(){1", "S0203", 12, 1, 13, "}"},
		{"function()<n{1}", "S0202", 10, 1, 11, ">"},
		{"function()<", "S0202", 10, 1, 11, ">"},
		{"function($x)<q>{1}", "S0401", 13, 1, 14, ""},
		{"function($x)<sn?q>{1}", "S0401", 16, 1, 17, ""},
		{"function($x)<n", "S0202", 12, 1, 13, ">"},
		{"function($x, y){1}", "S0208", 13, 1, 14, "y"},
		{"//", "S0301", 0, 1, 1, "/"},
		{"/a", "S0302", 0, 1, 1, "/"},
		{"/(a/", "S0302", 0, 1, 1, "/"},
		{"/a/b", "S0201", 3, 1, 4, "b"},
		{`/a\/`, "S0302", 0, 1, 1, "/"},
		{"/[a/", "S0302", 0, 1, 1, "/"},
		{"/a)/", "S0302", 0, 1, 1, "/"},
		{"/*a", "S0106", 0, 1, 1, "/*"},
		{"a * /b", "S0302", 4, 1, 5, "/"},
		{"/a**/", "U1003", 2, 1, 3, "/"},
		{`/\u20AC/`, "U1003", 1, 1, 2, "/"},
		{"/(?=a)/", "U1001", 1, 1, 2, "(?="},
		{"/x(?<n/", "S0302", 0, 1, 1, "/"},
		{`/(a)\1/`, "U1001", 4, 1, 5, "\\1"},
		{`/\k/`, "U1001", 1, 1, 2, "\\k"},
		{"/a{1001}/", "U1003", 2, 1, 3, "/"},
		{"/x(?<!a)b/", "U1001", 2, 1, 3, "(?<!a)b"},
		{"/b(?!a)/", "U1001", 2, 1, 3, "(?!"},
		{"/[z-a]/", "U1003", 2, 1, 3, "/"},
		{"a@$i", "U1001", 1, 1, 2, "@"},
		{"a#$i", "U1001", 1, 1, 2, "#"},
		{"a.%", "U1001", 2, 1, 3, "%"},
		{"%", "U1001", 0, 1, 1, "%"},
		{"|a|b|", "U1001", 0, 1, 1, "|"},
		{"a\n  b", "S0201", 4, 2, 3, "b"},
		{"a.\n  1.\n  2", "S0213", 5, 2, 3, "1"},
		{"é b", "S0201", 3, 1, 3, "b"},
		{"\n\né )", "S0201", 5, 3, 3, ")"},
		{"a ** b", "S0201", 2, 1, 3, "**"},
		{"a..b", "S0201", 1, 1, 2, ".."},
		{"[1..]", "S0211", 4, 1, 5, "]"},
		{"a:b", "S0201", 1, 1, 2, ":"},
		{"a,b", "S0201", 1, 1, 2, ","},
		{"a;b", "S0201", 1, 1, 2, ";"},
		{"1 2", "S0201", 2, 1, 3, ""},
		{"a ? b :", "S0207", 7, 1, 8, ""},
		{"a ?", "S0207", 3, 1, 4, ""},
		{"-", "S0207", 1, 1, 2, ""},
		{"$x :=", "S0207", 5, 1, 6, ""},
		{"a in", "S0207", 4, 1, 5, ""},
		{"a and", "S0207", 5, 1, 6, ""},
		{"abcdefghijklmnopqrstuvwxyzabcdefghijklmno b", "S0201", 42, 1, 43, "b"},
		{"a abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", "S0201", 2, 1, 3, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"},
		{"a 'abcdefghijklmnopqrstuvwxyzabcdefghijklmnop'", "S0201", 2, 1, 3, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"},
		{"a $abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", "S0201", 2, 1, 3, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"},
	} {
		root, _, err := Parse(c.src)
		var e *Error
		if !assert.ErrorAs(t, err, &e, c.src) {
			continue
		}
		assert.Equal(t, c.code, e.Code, c.src)
		assert.Equal(t, Pos{Offset: c.offset, Line: c.line, Column: c.column}, e.Pos, c.src)
		assert.Equal(t, c.token, e.Token, c.src)
		assert.Equal(t, c.code == CodeLeftOut, errors.Is(err, ErrLeftOut), c.src)
		assert.NotErrorIs(t, err, ErrLimit, c.src)
		if !strings.HasPrefix(c.code, "S0213") && c.code != "S0209" && c.code != "S0210" { // which read well
			assert.Nil(t, root, c.src)
		}
		prosetest.Error(t, err, c.src)
	}
}

// A value at a bound is accepted; above it the code identifies the bound.
func TestBounds(t *testing.T) {
	t.Parallel()
	regex := func(n int) string { return "/" + strings.Repeat("a", n) + "/" }
	for _, c := range []struct{ name, fits, not, code string }{
		{"length", strings.Repeat(" ", 64<<10-1) + "a", strings.Repeat(" ", 64<<10) + "a", CodeTooLong},
		{"brackets", strings.Repeat("(", 199) + "1" + strings.Repeat(")", 199), strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), CodeTooDeep},
		{"operators", strings.Repeat("-", 199) + "1", strings.Repeat("-", 200) + "1", CodeTooDeep},
		{"a regex", regex(1_000), regex(1_001), CodeTooLong},
		{"all regexes", "[" + strings.Repeat(regex(1_000)+", ", 4) + regex(1_000) + "]", "[" + strings.Repeat(regex(1_000)+", ", 5) + "/a/]", CodeTooLong},
		{"repeated", "/(?:abcd){999}/", "/(?:abcde){999}/", CodeTooLong},
		{"without end", "/(?:abcdefg){624,}/", "/(?:abcdefg){625,}/", CodeTooLong},
		{"groups", "/" + strings.Repeat("(a)", 50) + "/", "/" + strings.Repeat("(a)", 51) + "/", CodeTooLong},
	} {
		_, _, err := Parse(c.fits)
		assert.NoError(t, err, c.name)
		root, _, err := Parse(c.not)
		assert.Nil(t, root, c.name)
		require.ErrorIs(t, err, ErrLimit, c.name)
		assert.Equal(t, c.code, err.(*Error).Code, c.name)
		prosetest.Error(t, err, c.name)
	}
}

// A chain of operators isn't nested and can be as long as an expression.
func TestChains(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"a" + strings.Repeat(".a", 1_000), "1" + strings.Repeat("+1", 1_000), "[1" + strings.Repeat(",1", 1_000) + "]", "a" + strings.Repeat("[0]", 1_000)} {
		_, _, err := Parse(src)
		assert.NoError(t, err, src[:10])
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	e := &Error{Code: "S0201", Pos: Pos{Offset: 9, Line: 2, Column: 3}, Message: "wrong"}
	assert.Equal(t, "2:3: wrong (S0201)", e.Error())
	e.Hint = "write it right"
	assert.Equal(t, "2:3: wrong (S0201); write it right", e.Error())
	assert.NoError(t, e.Unwrap())
	e.Cause = ErrLimit
	assert.ErrorIs(t, e, ErrLimit)
	assert.NotErrorIs(t, e, ErrLeftOut)
}

func TestPosition(t *testing.T) {
	t.Parallel()
	const src = "a\né€b\n"
	for offset, want := range map[int]Pos{
		-1: {0, 1, 1}, 0: {0, 1, 1}, 1: {1, 1, 2}, 2: {2, 2, 1}, 4: {4, 2, 2}, 7: {7, 2, 3}, 8: {8, 2, 4}, 9: {9, 3, 1}, 99: {9, 3, 1},
	} {
		assert.Equal(t, want, Position(src, offset), offset)
	}
}

func TestLeftOutFunctions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"now", "millis", "fromMillis", "toMillis", "random", "shuffle", "eval", "formatNumber", "formatInteger", "parseInteger",
		"base64encode", "base64decode", "encodeUrl", "encodeUrlComponent", "decodeUrl", "decodeUrlComponent",
	} {
		feature, hint, ok := LeftOutFunction(name)
		require.True(t, ok, name)
		err := LeftOutCall("1 + $"+name, &Variable{Common: Common{At: 4}, Name: name})
		var e *Error
		require.ErrorAs(t, err, &e, name)
		require.ErrorIs(t, err, ErrLeftOut, name)
		assert.Equal(t, [3]any{CodeLeftOut, Pos{4, 1, 5}, "$" + name}, [3]any{e.Code, e.Pos, e.Token}, name)
		assert.Equal(t, hint, e.Hint, name)
		assert.Contains(t, e.Message, feature, name)
		prosetest.Error(t, err, name)
	}
	for _, name := range []string{"sum", "Now", "", "string"} {
		feature, hint, ok := LeftOutFunction(name)
		assert.Equal(t, [3]any{"", "", false}, [3]any{feature, hint, ok}, name)
		assert.NoError(t, LeftOutCall("$"+name, &Variable{Name: name}), name)
	}
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	e := TooDeep("a\nb", 2)
	assert.Equal(t, &Error{Code: CodeTooDeep, Pos: Pos{2, 2, 1}, Message: e.Message, Cause: ErrLimit}, e)
}
