package jsonata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Unsupported parts are rejected by name and position, before evaluation.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, names   string
		line, column int
	}{
		{"library.loans@$l.books", "joins (context binding @)", 1, 14},
		{"a#$i.b", "positional binding #", 1, 2},
		{"a.b.%.c", "parent operator %", 1, 5},
		{"a.%.%.b", "parent operator %", 1, 3},
		{`$ ~> |Account|{"x": 1}|`, "transforms |…|…|", 1, 6},
		{`|a|b|`, "transforms |…|…|", 1, 1},
		{"$now()", "$now (dates)", 1, 1},
		{"$fromMillis($millis())", "$fromMillis (dates)", 1, 1},
		{"{'t': $toMillis(t)}", "$toMillis (dates)", 1, 7},
		{"$random() > 0.5", "$random (randomness: routing is deterministic)", 1, 1},
		{"$shuffle(a)", "$shuffle (randomness", 1, 1},
		{"$eval('1')", "$eval (strings as expressions)", 1, 1},
		{"$formatNumber(1, '0')", "$formatNumber (number formats)", 1, 1},
		{"$formatInteger(1, 'w')", "$formatInteger (number formats)", 1, 1},
		{"$parseInteger('1', '0')", "$parseInteger (number formats)", 1, 1},
		{"$encodeUrl(a)", "$encodeUrl (encodings)", 1, 1},
		{"$base64decode(a)", "$base64decode (encodings)", 1, 1},
		{"$exists($now)", "$now (dates)", 1, 9},
		{"$map(a, function($x){$millis()})", "$millis (dates)", 1, 22},
		{"a.%^(b)", "parent operator %", 1, 3},
		{"/a(?=b)/", "lookaround", 1, 3},
		{"$match(a, /(?<!x)b/)", "lookaround", 1, 12},
		{`$replace(a, /(.)\1/, "")`, `backreferences`, 1, 17},
	} {
		_, err := Parse(c.src)
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.ErrorIs(t, err, ErrLeftOut, c.src)
		require.Equal(t, syntax.CodeLeftOut, e.Code, c.src)
		require.Contains(t, e.Message, c.names, c.src)
		require.Equal(t, [2]int{c.line, c.column}, [2]int{e.Pos.Line, e.Pos.Column}, c.src)
	}
	// A user's own variable can have any name.
	_, err := Parse("($now := 1; $now)")
	require.NoError(t, err)
}

// TestMessages shows the messages that an author sees.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"",
		"a = ",
		"meta.",
		"a == b",
		"a && b",
		"a || b",
		"a AND b",
		"not a",
		"!a",
		"a => b",
		"(a",
		"[a; b]",
		"steps.0.role",
		"a.true",
		"x = 'it's'",
		`x = 'it\'s'`,
		"'open",
		"a /* b",
		"a := 1",
		"$cuont(history)",
		"$size(history)",
		"count(history) > 1",
		"filter(a)",
		"now()",
		"function(x){x}",
		"function($x) $x",
		"function($x)",
		"function($x)<u>{1}",
		"/a",
		"//",
		"/a(b/",
		"/a**/",
		`/\u20AC/`,
		"/(?=a)/",
		"/(abcdefgh){900}/",
		"exist(a)",
		"$count(a, b)",
		"$substring()",
		"a ~> $contains('x', 1)",
		"$now()",
		"$filter(a)",
	} {
		_, err := Parse(src)
		prosetest.Error(t, err, src)
	}
}

// TestValueMessages shows the messages for values that a condition can't use.
func TestValueMessages(t *testing.T) {
	t.Parallel()
	input := thread(t, `{"n":1,"s":"three","o":{"k":[1,2]},"a":[1,"x"],"z":null,"long":"`+strings.Repeat("é", 100)+`"}`)
	for _, src := range []string{
		"s > 3",
		"true > 3",
		"n +\n s",
		"o * 2",
		"-s",
		"[n..s]",
		"$sum(a)",
		"$contains(s, n)",
		"$number(z)",
		"$number(s)",
		"o.$length()",
		"{n: 1}",
		"$error('no ' & s)",
		"$assert(n = 2, 'n must be 2')",
		"n.$uppercase()",
		"$uppercase(n)",
		"n ~> s",
		"1/0",
		"$map(a, function($x){count($x)})",
		"($f := function($x)<n:n>{$x}; $f(s))",
		"a^($)",
		"$sort(a)",
		"$match(s, $uppercase)",
		"$split(s, /x*/)",
		"$single(a)",
		"$reduce(a, function($x){$x})",
		"function($x){$x}",
		"long + 1",
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		_, _, err = x.Eval(t.Context(), input, Options{})
		prosetest.Error(t, err, src)
	}
}
