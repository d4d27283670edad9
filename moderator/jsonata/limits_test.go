package jsonata

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// Hostile expressions stop at bounds that count work rather than time, so these tests are fast.
func TestHostileExpressions(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"1 MB":             strings.Repeat("a or ", 200_000) + "a",
		"parentheses":      strings.Repeat("(", 30_000),
		"brackets":         strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000),
		"minus":            strings.Repeat("-", 60_000) + "1",
		"predicates":       "a" + strings.Repeat("[a", 20_000),
		"conditions":       strings.Repeat("a?a:", 15_000) + "a",
		"defaults":         strings.Repeat("a??", 20_000) + "a",
		"assignments":      strings.Repeat("$a:=", 15_000) + "1",
		"a chain of +":     strings.Repeat("1+", 30_000) + "1",
		"a chain of calls": "$sum" + strings.Repeat("(1)", 20_000),
		"a chain of ~>":    "1" + strings.Repeat("~>$abs", 10_000),
		"objects":          strings.Repeat("{'a':", 10_000),
		"blocks":           strings.Repeat("(a;", 20_000),
		"functions":        strings.Repeat("function(){", 5_000),
		"sorting":          strings.Repeat("a^(", 20_000),
		"a long regex":     "/" + strings.Repeat("a", 2_000) + "/",
		"a large regex":    "/(abcdefgh){1000}/",
		"many regexes":     "[" + strings.Repeat("/a{500}/,", 50) + "1]",
		"classes":          "/" + strings.Repeat(`\pL`, 300) + "/",
		"groups":           "/" + strings.Repeat("()", 100) + "/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(src)
			require.ErrorIs(t, err, ErrLimit)
		})
	}
}

// Long expressions aren't deep: typical handwritten and generated ones fit.
func TestLongExpressions(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"a path":         "a" + strings.Repeat(".a", 10_000),
		"an array":       "[" + strings.Repeat("1,", 20_000) + "1]",
		"a block":        "(" + strings.Repeat("$a := 1;", 5_000) + ")",
		"400 conditions": strings.Repeat("a = 1 or ", 400) + "a",
		"100 levels":     strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100),
		"predicates":     "a" + strings.Repeat("[1]", 10_000),
	} {
		x, err := Parse(src)
		require.NoError(t, err, name)
		_, _, err = x.Eval(t.Context(), map[string]any{}, Options{})
		require.NoError(t, err, name)
	}
}

func TestHostileEvaluations(t *testing.T) {
	t.Parallel()
	double := func(step string) string { return "($a := 'xxxxxxxx'; " + strings.Repeat(step+";", 60) + "$a)" }
	deep := any("x")
	for range 100_000 {
		deep = []any{deep}
	}
	// All work is counted, so a tenth of the default bounds suffices here.
	d := Options{}.withDefaults()
	tenth := Options{MaxSteps: d.MaxSteps / 10, MaxItems: d.MaxItems / 10, MaxBytes: d.MaxBytes / 10}
	input := map[string]any{"deep": deep, "text": strings.Repeat("x", 1<<20)}
	for _, src := range []string{
		double("$a := $a & $a"),
		double("$a := $append($a, $a)"),
		double("$a := $join([$a, $a])"),
		double("$a := $replace($a, 'x', 'xx')"),
		double("$a := [[$a], [$a]]"),
		double("$a := {'l': $a, 'r': $a}"),
		"($a := 0; " + strings.Repeat("$a := [[$a], [$a]];", 60) + "$a ? 1 : 2)",
		"($a := 0; " + strings.Repeat("$a := [[$a], [$a]];", 60) + "$a = $a & '')",
		"($a := 1; " + strings.Repeat("$a := [[$a], [$a]];", 60) + "$a = $append($a, []))",
		"($a := 1; " + strings.Repeat("$a := [[$a], [$a]];", 60) + "$a.x)",
		"($a := 1; " + strings.Repeat("$a := [[$a], [$a]];", 60) + "$distinct([$a, $a]))",
		"($f := $abs; " + strings.Repeat("$f := $f ~> $f;", 60) + "$f(1))",
		"($f := $count; " + strings.Repeat("$f := $f ~> $f;", 2000) + "$f(1))",
		"($f := function(){$f()}; $f())",
		"($f := function(){1 + $f()}; $f())",
		"($f := function($n){$f($n + 1)}; $f(1))",
		"($f := function($n){($n > 0 ? ($g := $n; $f($g + 1)))}; $f(1))",
		"($f := function($g){$f(function(){$g()})}; $f(1))",
		"($f := function($a){$f($append($a, $a))}; $f([1, 2]))",
		"($f := function($n){$n < 2 ? 1 : $f($n - 1) + $f($n - 2)}; $f(40))",
		"($w := function($x){$x($x)}; $w($w))",
		"$map([1], function($x){($f := function(){$map([1], $f)}; $f())})",
		"$reduce([1..1000], function($a, $i){$a & $a}, 'x')",
		"$reduce([1..1000], function($a, $i){$append($a, $a)}, [1])",
		"$reduce([1..1000], function($a, $i){[$a, $a]}, 1) = 1 & ''",
		"$reduce([1..1000], function($a, $i){$replace($a, /./, '$0$0')}, 'x')",
		"$reduce([1..1000], function($a, $i){$replace($a, /x/, function($m){'xx'})}, 'x')",
		"$reduce($append([$abs], [1..60]), function($f, $i){$f ~> $f})(1)",
		"$map([1..10000000], function($x){$x})", "$filter([1..10000000], $boolean)", "$reduce([1..10000000], function($a, $b){$a})",
		"$sort([1..10000000])", "[1..10000000]^($)", "$sort([1..5000], function($a, $b){$sum([1..500]) > 1})",
		"$single([1..10000000], function($x){false})", "$map([1..3000], function($x){$map([1..3000], function($y){1})})",
		"$each($$, function(){$map([1..1000000], function(){1})})",
		"$match(text, /x/)", "$split(text, /x/)", "$match(text, /(x+x+)+y/)", "$contains(text, /(.*)(.*)(.*)(.*)(.*)[a-z]{900}y/)",
		"$replace($pad('', 200000), / /, '$0$0$0$0$0$0$0$0$0$0$0')", "$map([1..1000], function(){$contains($$.text, /y$/)})",
		"function($a)<x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?n>{1}(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,'a')",
		"[1..10000000]", "$sum([1..10000000])", "[1..10000000][$ % 2 = 0]", "[1..5000].[1..5000]",
		"[1..10000000].$string()", "$reverse([1..10000000])", "$append([1..10000000], 1)", "$string([1..10000000])",
		"$zip([1..10000000], [1..10000000])", "$distinct([1..10000000])", "-1 in [1..10000000]",
		"[1..10000000] = [1..10000000]", "[1..10000000][[1..10000000]]", "$max([1..10000000])",
		"($r := [1..10000000]; [$r, $r])", "$merge([1..3000].{$string(): [1..3000]})",
		"$pad('', 1e300)", "$pad('x', -1e9, 'yy')", "$split($pad('', 10000000), '')", "[1..1000].$$.text.$uppercase()",
		"**", "deep.x", "$string(deep)", "deep = deep & ''", "$boolean(deep) and $keys(deep)", "$spread(deep)", "$distinct([deep, deep])",
	} {
		t.Run(src[:min(len(src), 40)], func(t *testing.T) {
			t.Parallel()
			x, err := Parse(src)
			require.NoError(t, err)
			_, _, err = x.Eval(t.Context(), input, tenth)
			require.ErrorIs(t, err, ErrLimit)
		})
	}
}

func TestOwnLimits(t *testing.T) {
	t.Parallel()
	for src, c := range map[string]struct {
		options Options
		code    string
	}{
		"[1..100].($ + 1)":       {Options{MaxSteps: 100}, syntax.CodeTooManySteps},
		"((((((1))))))":          {Options{MaxDepth: 5}, syntax.CodeTooDeep},
		"[[[[[[1]]]]]]":          {Options{MaxDepth: 6}, syntax.CodeTooDeep},
		"[1..100][$ > 0]":        {Options{MaxItems: 50}, syntax.CodeTooLarge},
		"'12345' & '67890'":      {Options{MaxBytes: 9}, syntax.CodeTooLarge},
		"$string([1..5])":        {Options{MaxBytes: 5}, syntax.CodeTooLarge},
		"{'a': 1, 'b': 2}":       {Options{MaxItems: 1}, syntax.CodeTooLarge},
		"$uppercase('abcdefgh')": {Options{MaxBytes: 5}, syntax.CodeTooLarge},
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		_, _, err = x.Eval(t.Context(), nil, c.options)
		require.ErrorIs(t, err, ErrLimit, src)
		require.Equal(t, c.code, err.(*Error).Code, src)
		_, _, err = x.Eval(t.Context(), nil, Options{})
		require.NoError(t, err, src)
	}
}

// lastingContext is canceled after a few checks, in the middle of an evaluation.
type lastingContext struct {
	context.Context
	looks int
	end   context.CancelCauseFunc
}

func (c *lastingContext) Err() error {
	if c.looks--; c.looks < 0 {
		c.end(errEnough)
	}
	return c.Context.Err()
}

var errEnough = errors.New("enough")

func TestContextEndsEvaluation(t *testing.T) {
	t.Parallel()
	x, err := Parse("[1..1000000].($ * 2)[$ > 3]")
	require.NoError(t, err)
	for _, looks := range []int{0, 1, 20} {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, _, err = x.Eval(&lastingContext{ctx, looks, cancel}, nil, Options{})
		require.ErrorIs(t, err, errEnough)
		require.Equal(t, syntax.CodeStopped, err.(*Error).Code)
	}
}
