package jsonata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// What is left out is refused by name and position, before anything is run.
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
		{"$random() > 0.5", "$random (chance: routing is deterministic)", 1, 1},
		{"$shuffle(a)", "$shuffle (chance", 1, 1},
		{"$eval('1')", "$eval (texts as expressions)", 1, 1},
		{"$formatNumber(1, '0')", "$formatNumber (pictures of numbers)", 1, 1},
		{"$formatInteger(1, 'w')", "$formatInteger (pictures of numbers)", 1, 1},
		{"$parseInteger('1', '0')", "$parseInteger (pictures of numbers)", 1, 1},
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
	// A variable of one's own may have any name.
	_, err := Parse("($now := 1; $now)")
	require.NoError(t, err)
}

// TestMessages shows what an author reads.
func TestMessages(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"":                       "1:1: the expression ends where an operand should follow (S0207)",
		"a = ":                   "1:5: the expression ends where an operand should follow (S0207)",
		"meta.":                  "1:6: the expression ends where an operand should follow (S0207)",
		"a == b":                 `1:4: an operand should come here, not "=" (S0211); write one "=" to compare`,
		"a && b":                 `1:4: an operand should come here, not "&" (S0211); write "and"`,
		"a || b":                 `1:3: "|" should not come here (S0201); write "or"`,
		"a AND b":                `1:3: "AND" should not come here (S0201); write "and"`,
		"not a":                  `1:5: "a" should not come here (S0201); write $not(…)`,
		"!a":                     `1:1: the operator "!" does not exist (S0204); write $not(…)`,
		"a => b":                 `1:4: an operand should come here, not ">" (S0211); write ">=" or "!="`,
		"(a":                     `1:3: ")" is missing at the end of the expression (S0203)`,
		"[a; b]":                 `1:3: "]" should come here, not ";" (S0202)`,
		"steps.0.role":           "1:7: 0 cannot be a step of a path (S0213); write `0` in backquotes if it is the name of a field, or [0] for an item of an array",
		"a.true":                 "1:3: true cannot be a step of a path (S0213); write `true` in backquotes if it is the name of a field, or [true] for an item of an array",
		"x = 'it's'":             `1:9: "s'" should not come here (S0201)`,
		`x = 'it\'s'`:            `1:8: the escape sequence "\'" does not exist (S0103); write a text with ' in double quotes`,
		"'open":                  "1:1: the text is never closed with ' (S0101)",
		"a /* b":                 "1:3: the comment is never closed with */ (S0106)",
		"a := 1":                 `1:3: ":=" needs a variable on its left (S0212); write $name := value`,
		"$cuont(history)":        "1:1: there is no function $cuont (T1006); did you mean $count?",
		"$size(history)":         "1:1: there is no function $size (T1006)",
		"count(history) > 1":     `1:1: "count" is a field and cannot be called (T1005); did you mean $count?`,
		"filter(a)":              `1:1: "filter" is a field and cannot be called (T1005); did you mean $filter?`,
		"now()":                  `1:1: "now" is a field and cannot be called (T1005); did you mean $now?`,
		"function(x){x}":         `1:10: parameter 1 of a function must be a variable, not "x" (S0208); write $x`,
		"function($x) $x":        `1:14: the body of a function should come here in {…}, not "$x" (S0202); write function($x){$x + 1}`,
		"function($x)":           `1:12: the function has no body (S0203); write function($x){$x + 1}`,
		"function($x)<u>{1}":     `1:14: the signature cannot be read here: it has a letter for each parameter, as in <s-n?:b> (S0401)`,
		"/a":                     `1:1: the regular expression, or a bracket in it, is never closed (S0302)`,
		"//":                     `1:1: a regular expression must not be empty (S0301)`,
		"/a(b/":                  "1:1: the regular expression, or a bracket in it, is never closed (S0302)",
		"/a**/":                  "1:3: the regular expression cannot be read: invalid nested repetition operator \"**\" (U1003)",
		`/\u20AC/`:               "1:2: the regular expression cannot be read: invalid escape sequence \"\\\\u\" (U1003); write \\x{20AC}",
		"/(?=a)/":                "1:2: the JSONata of uwf has no lookaround (?=…) (?!…) (?<=…) (?<!…) (U1001); regular expressions are RE2, which always ends soon",
		"/(abcdefgh){900}/":      "1:2: the regular expressions are too large (U2001)",
		"exist(a)":               `1:1: "exist" is a field and cannot be called (T1006); did you mean $exists?`,
		"$count(a, b)":           "1:1: $count takes 1 argument, not 2 (T0410)",
		"$substring()":           "1:1: $substring takes 1 to 3 arguments, not 0 (T0410)",
		"a ~> $contains('x', 1)": "1:6: $contains takes 1 to 2 arguments, not 3 (T0410)",
		"$now()":                 "1:1: the JSONata of uwf has no $now (dates) (U1001); let the role put the time into its answer",
		"$filter(a)":             "1:1: $filter takes 2 arguments, not 1 (T0410)",
	} {
		_, err := Parse(src)
		require.EqualError(t, err, want, src)
	}
}

// TestValueMessages shows what an author reads when a condition meets a value
// that it cannot work with.
func TestValueMessages(t *testing.T) {
	t.Parallel()
	input := thread(t, `{"n":1,"s":"three","o":{"k":[1,2]},"a":[1,"x"],"z":null,"long":"`+strings.Repeat("é", 100)+`"}`)
	for _, c := range []struct{ src, want, value string }{
		{"s > 3", `1:3: both sides of ">" must be numbers, or both texts, not the text "three" and 3 (T2009)`, `"three"`},
		{"true > 3", `1:6: ">" compares numbers or texts, not true (T2010)`, "true"},
		{"n +\n s", `1:3: the right side of "+" must be a number, not the text "three" (T2002)`, `"three"`},
		{"o * 2", `1:3: the left side of "*" must be a number, not an object (T2001)`, `{"k":[1,2]}`},
		{"-s", `1:1: only a number can be negated, not the text "three" (D1002)`, `"three"`},
		{"[n..s]", `1:3: the right side of ".." must be a whole number, not the text "three" (T2004)`, `"three"`},
		{"$sum(a)", `1:1: argument 1 of $sum must be an array of numbers, not the text "x" (T0412)`, `[1,"x"]`},
		{"$contains(s, n)", "1:1: argument 2 of $contains must be a string or a function, not 1 (T0410)", "1"},
		{"$number(z)", "1:1: argument 1 of $number must be a number, a string or a boolean, not null (T0410)", "null"},
		{"$number(s)", `1:1: the text "three" is no number (D3030)`, `"three"`},
		{"o.$length()", "1:3: $length without argument 1 uses the context, which must be a string, not an object (T0411)", `{"k":[1,2]}`},
		{"{n: 1}", "1:2: a key must be a text, not 1 (T1003)", "1"},
		{"$error('no ' & s)", "1:1: no three (D3137)", ""},
		{"$assert(n = 2, 'n must be 2')", "1:1: n must be 2 (D3141)", ""},
		{"n.$uppercase()", "1:3: $uppercase without argument 1 uses the context, which must be a string, not 1 (T0411)", "1"},
		{"$uppercase(n)", "1:1: argument 1 of $uppercase must be a string, not 1 (T0410)", "1"},
		{"n ~> s", `1:3: the right side of "~>" must be a function, not the text "three" (T2006)`, `"three"`},
		{"1/0", "1:2: Infinity is no number to go on with; was something divided by 0? (D1001)", ""},
		{"$map(a, function($x){count($x)})", `1:22: "count" is a field and cannot be called (T1005); did you mean $count?`, ""},
		{"($f := function($x)<n:n>{$x}; $f(s))", `1:31: argument 1 of $f must be a number, not the text "three" (T0410)`, `"three"`},
		{"a^($)", `1:2: ^(…) sorts by numbers, or by texts, not by 1 and the text "x" (T2007)`, "1"},
		{"$sort(a)", `1:1: $sort without a function sorts numbers, or texts, not the text "x" (D3070)`, `"x"`},
		{"$match(s, $uppercase)", "1:1: argument 2 of $match must be a regular expression, not the function $uppercase (T1010)", ""},
		{"$split(s, /x*/)", "1:1: the regular expression /x*/ finds an empty text, again and again (D1004)", ""},
		{"$single(a)", "1:1: $single finds more than one item (D3138)", ""},
		{"$reduce(a, function($x){$x})", "1:1: argument 2 of $reduce must be a function of at least two parameters (D3050)", ""},
		{"function($x){$x}", "1:1: the result is a function, not what it gives (U1002)", ""},
		{"long + 1", `1:6: the left side of "+" must be a number, not the text "éééééééééééééééééééé…" (T2001)`, `"` + strings.Repeat("é", 40) + `…"`},
	} {
		x, err := Parse(c.src)
		require.NoError(t, err, c.src)
		_, _, err = x.Eval(t.Context(), input, Options{})
		require.EqualError(t, err, c.want, c.src)
		require.Equal(t, c.value, err.(*Error).Value, c.src)
	}
}
