package jsonata

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTouches(t *testing.T) {
	t.Parallel()
	for src, want := range map[string][]string{
		"meta.approved = false":                          {"meta"},
		"$not($exists(meta.needsClarification))":         {"meta"},
		"steps[-1].output.approved":                      {"steps"},
		"history[role = 'developer']":                    {"history"},
		"history[$$.depth > 3]":                          {"history", "depth"},
		"$count(history[$.role = 'developer'].meta) > 3": {"history"},
		"$.history":                           {"history"},
		"$$.output.($.a + b)":                 {"output"},
		"(meta; output).x":                    {"meta", "output"},
		"(output; $).depth":                   {"output", "depth"},
		"(depth > 1 ? $ : $$).meta":           {"depth", "meta"},
		"(meta ?? $).steps":                   {"meta", "steps"},
		"$lookup($, 'history')":               {"history"},
		"$$ ~> $lookup('history')":            {"history"},
		"{'a': meta, 'b': $.output}":          {"meta", "output"},
		"output{role: meta}":                  {"output"},
		"($x := meta; $x.history)":            {"meta"},
		"($x := $lookup; $x(meta, 'a'))":      {"meta", "*"},
		"output.$string()":                    {"output"},
		"output.$keys().history":              {"output"},
		"[1..3].$string()":                    {},
		"$sum(meta.scores) / $count(history)": {"meta", "history"},
		"true":                                {},
		"meta in [role, 'x']":                 {"meta", "role"},
		"meta[]":                              {"meta"},
		"$[role = 'x'].meta":                  {"role", "meta"},
		"$substring(?, 1)(role)":              {"role"},

		"$map(history, function($h){$h.meta.ok})":           {"history"},
		"$filter(steps, function($s){$s.role = role}).meta": {"steps", "role"},
		"($f := function($x){$x + depth}; $f(1))":           {"depth"},
		"steps^(role, >$$.depth)[-1].output":                {"steps", "depth"},
		"steps[-1]^(role)":                                  {"steps"},
		"$replace(role, /x/, function($m){meta.a}, 1)":      {"role", "meta"},
		"role ~> /x/":                   {"role"},
		"meta.(function($x){depth}(1))": {"meta"},

		"function($x){$}(1)":                   {"*"},
		"function($x)<s-:s>{$x}()":             {"*"},
		"($f := function(){$$}; $f().history)": {"*"},
		"$^(role).history":                     {"role", "history"},
		"$map($, function($x){$x.history})":    {"*"},
		"$ ~> function($x){$x.history}":        {"*"},
		"$each(function($v, $k){$k})":          {"*"},
		"($f := $keys ~> $count; $f(meta))":    {"meta", "*"},

		"$":                         {"*"},
		"$$":                        {"*"},
		"$$ = 1":                    {"*"},
		"*":                         {"*"},
		"**.approved":               {"*"},
		"meta.**":                   {"meta"},
		"$string()":                 {"*"},
		"$keys()":                   {"*"},
		"$keys($)":                  {"*"},
		"$lookup($, role)":          {"role", "*"},
		"$lookup('history')":        {"*"},
		"($x := $; $x.history)":     {"*"},
		"[$].history":               {"*"},
		"{'r': $}.r.history":        {"*"},
		"$ ~> $keys":                {"*"},
		"meta[$$ = 1]":              {"meta", "*"},
		"$exists($) and meta":       {"meta", "*"},
		"role ? $$ : false":         {"role", "*"},
		"$spread($).history":        {"*"},
		"($f := $keys; $f())":       {"*"},
		"meta.$lookup($$, 'depth')": {"meta", "depth"},
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		r := x.Reads()
		got := map[string]bool{}
		for _, p := range r.Paths {
			got[p.Names[0]] = true
		}
		if r.All {
			got["*"] = true
		}
		expected := map[string]bool{}
		for _, f := range want {
			expected[f] = true
		}
		require.Equal(t, expected, got, src)
		require.Equal(t, expected["*"] || expected["history"], touches(r, "history"), src)
	}
}

func TestReadsHavePositions(t *testing.T) {
	t.Parallel()
	x, err := Parse("meta.ok and\n  ($a := é.$b; stpes[0]\n.$c)")
	require.NoError(t, err)
	r := x.Reads()
	require.Equal(t, []Pos{{Offset: 0, Line: 1, Column: 1}, {Offset: 21, Line: 2, Column: 10}, {Offset: 28, Line: 2, Column: 16}}, []Pos{r.Paths[0].Pos, r.Paths[1].Pos, r.Paths[2].Pos})
	require.Equal(t, []Name{{"b", Pos{Offset: 24, Line: 2, Column: 12}}, {"c", Pos{Offset: 38, Line: 3, Column: 2}}}, r.Unbound)
}

// Without the fields that Touches excludes, every case gives the same result.
func TestTouchesIsTrue(t *testing.T) {
	t.Parallel()
	cases, datasets := loadCases(t)
	checked := 0
	for _, c := range cases {
		x, err := Parse(c.Expr)
		input, ok := c.input(t, datasets).(*Object)
		if err != nil || !ok || len(c.Bindings) > 0 {
			continue
		}
		reads, needed := x.Reads(), &Object{}
		for _, k := range input.Keys() {
			if v, _ := input.Get(k); touches(reads, k) {
				needed.Set(k, v)
			}
		}
		if needed.Len() == input.Len() {
			continue
		}
		checked++
		require.Equal(t, outcome(t, x, input), outcome(t, x, needed), c.Expr)
	}
	require.Greater(t, checked, 100)
}

// outcome formats the complete result of an evaluation.
func outcome(t testing.TB, x *Expr, input any) string {
	t.Helper()
	return outcomeOver(t, x, input, nil)
}

// outcomeOver is outcome with a value for the variable $s.
func outcomeOver(t testing.TB, x *Expr, input, variable any) string {
	t.Helper()
	o := Options{}
	if variable != nil {
		o.Bindings = map[string]any{"s": variable}
	}
	v, defined, err := x.Eval(t.Context(), input, o)
	if err != nil {
		return err.Error()
	}
	data, err := json.Marshal(plain(v))
	require.NoError(t, err)
	if !defined {
		return "undefined"
	}
	return string(data)
}
