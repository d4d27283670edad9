package jsonata

import (
	"encoding/json"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
)

// thread returns the input of a condition.
func thread(t testing.TB, text string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// TestConditions covers typical conditions and common mistakes.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, input string
		want       bool
	}{
		{`steps[-1].output.approved = false`, `{"steps":[{"output":{"approved":true}},{"output":{"approved":false}}]}`, true},
		{`steps[-1].output.approved = false`, `{"steps":[{"output":{"approved":true}}]}`, false},
		{`steps[-1].output.approved = false`, `{"steps":[{"output":{}}]}`, false},
		{`steps[-1].output.approved = false`, `{"steps":[]}`, false},
		// A missing value is neither equal nor unequal.
		{`x = 1`, `{}`, false},
		{`x != 1`, `{}`, false},
		{`x != 1`, `{"x":null}`, true},
		{`$not(x = 1)`, `{}`, true},
		{`missing > 3`, `{}`, false},
		{`$not($exists(meta.needsClarification))`, `{"meta":{}}`, true},
		{`$not($exists(meta.needsClarification))`, `{"meta":{"needsClarification":null}}`, false},
		{`$not($exists(meta.needsClarification))`, `{"meta":{"needsClarification":false}}`, false},
		// A single match isn't in an array, and still counts as one.
		{`$count(history[role = 'developer']) = 0`, `{"history":[{"role":"x"}]}`, true},
		{`$count(history[role = 'developer']) = 1`, `{"history":[{"role":"developer"},{"role":"x"}]}`, true},
		{`$count(history[role = 'developer']) > 1`, `{"history":[{"role":"developer"},{"role":"developer"}]}`, true},
		{`a and b`, `{"a":true}`, false},
		{`a or b`, `{"a":true}`, true},
		{`meta.score >= 0.5 and depth < 10`, `{"meta":{"score":0.5},"depth":9}`, true},
		{`"tests" in output.failed`, `{"output":{"failed":["lint","tests"]}}`, true},
		{`"tests" in output.failed`, `{"output":{"failed":"tests"}}`, true},
		{`output.failed`, `{"output":{"failed":[]}}`, false},
		{`output.failed`, `{"output":{"failed":["x"]}}`, true},
		// These are in docs/workflow-file.md.
		{`$filter(history, function($h){$h.meta.score > 0.5}) ~> $count() > 2`, `{"history":[{"meta":{"score":1}},{"meta":{"score":0.6}},{"meta":{}}]}`, false},
		{`$filter(history, function($h){$h.meta.score > 0.5}) ~> $count() > 2`, `{"history":[{"meta":{"score":1}},{"meta":{"score":0.6}},{"meta":{"score":2}}]}`, true},
		{`$reduce(history.meta.cost, function($a, $b){$a + $b}) > 100`, `{"history":[{"meta":{"cost":60}},{"meta":{"cost":50}}]}`, true},
		{`$reduce(history.meta.cost, function($a, $b){$a + $b}) > 100`, `{"history":[]}`, false},
		{`history[role = "judge"]^(>meta.score)[0].meta.winner = "a"`, `{"history":[{"role":"judge","meta":{"score":1,"winner":"b"}},{"role":"judge","meta":{"score":2,"winner":"a"}}]}`, true},
		{`$contains(meta.title, /^(fix|feat):/)`, `{"meta":{"title":"feat: x"}}`, true},
		{`meta.branch ~> /^release-\d+$/`, `{"meta":{"branch":"release-12"}}`, true},
		{`meta.branch ~> /^release-\d+$/`, `{"meta":{}}`, false},
		{`($worst := function($list){$sort($list.severity)[-1]}; $worst(meta.findings) >= 3)`, `{"meta":{"findings":[{"severity":3},{"severity":1}]}}`, true},
	} {
		x, err := Parse(c.src)
		require.NoError(t, err, c.src)
		v, defined, err := x.Eval(t.Context(), thread(t, c.input), Options{})
		require.NoError(t, err, c.src)
		require.Equal(t, c.want, Truthy(v, defined), "%s over %s", c.src, c.input)
	}
}

// An index binds to its step, not to the whole path.
func TestIndexBindsToItsStep(t *testing.T) {
	t.Parallel()
	input := thread(t, `{"a":[{"b":[1,2]},{"b":[3]}]}`)
	for src, want := range map[string]any{
		"a.b[0]":   []any{1.0, 3.0},
		"(a.b)[0]": 1.0,
		"a[0].b":   []any{1.0, 2.0},
		"a[1].b":   []any{3.0},
		"a.b[-1]":  []any{2.0, 3.0},
		"(a.b)":    []any{1.0, 2.0, 3.0},
		"a.b[5]":   nil,
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		v, _, err := x.Eval(t.Context(), input, Options{})
		require.NoError(t, err, src)
		if l, ok := v.([]any); ok {
			require.EqualValues(t, toJSON(t, want), toJSON(t, l), src)
			continue
		}
		require.EqualValues(t, want, v, src)
	}
}

func TestTruthy(t *testing.T) {
	t.Parallel()
	require.False(t, Truthy(true, false), "what is not defined is false")
	for _, v := range []any{
		nil, false, "", int64(0), 0.0, json.Number("0"), []any{}, []any{int64(0)}, []any{[]any{""}, nil},
		map[string]any{}, &Object{},
	} {
		require.False(t, Truthy(v, true), "%#v", v)
	}
	o := &Object{}
	o.Set("k", nil)
	for _, v := range []any{
		true, "false", int64(-1), 0.5, json.Number("1e3"), []any{false, "x"}, []any{[]any{0.0, 1.0}},
		map[string]any{"k": nil}, o,
	} {
		require.True(t, Truthy(v, true), "%#v", v)
	}
}

// Numbers of any Go type from JSON decoders are accepted, and results use the shortest exact type.
func TestNumbers(t *testing.T) {
	t.Parallel()
	input := map[string]any{"i": int64(2), "f": 2.0, "n": 2, "u": uint64(2), "j": json.Number("2"), "h": 0.5}
	for src, want := range map[string]any{
		"i + 1": int64(3), "f + 1": int64(3), "n + 1": int64(3), "u + 1": int64(3), "j + 1": int64(3),
		"i = f and f = n and n = u and u = j": true,
		"h * 3":                               1.5,
		"9007199254740993":                    int64(1 << 53), // doubles, as in JSONata
		"1e300":                               1e300,
		"-0":                                  int64(0),
		"$string(j)":                          "2",
		"j":                                   json.Number("2"), // parts of the input are returned unchanged
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		v, defined, err := x.Eval(t.Context(), input, Options{})
		require.NoError(t, err, src)
		require.True(t, defined)
		require.Equal(t, want, v, src)
	}
}

func TestInfinityIsAnError(t *testing.T) {
	t.Parallel()
	input := map[string]any{"zero": int64(0), "inf": math.Inf(1)}
	for _, src := range []string{
		"1/0", "-1/zero", "0/0", "1/0 > 3", "3 = 1/0", "1/0 ? 1 : 2", "1/0 and true", "[1/0]", `{"a": 1/0}`,
		"$boolean(1/0)", "$abs(1/0)", "1/0 + 1", "inf", "[1,2][1/0]", "1e308 * 10", "$sum([1e308, 1e308])",
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		_, _, err = x.Eval(t.Context(), input, Options{})
		var e *Error
		require.ErrorAs(t, err, &e, src)
		require.Contains(t, []string{"D1001", "T2001"}, e.Code, src)
	}
}

// The members of an Object keep their order; those of a map are sorted.
func TestOrder(t *testing.T) {
	t.Parallel()
	o := &Object{}
	for _, k := range []string{"z", "a", "m"} {
		o.Set(k, k)
	}
	o.Set("z", "Z")
	plain := map[string]any{"z": "Z", "a": "a", "m": "m"}
	for src, want := range map[string][2]any{
		"$keys($)":                {[]any{"z", "a", "m"}, []any{"a", "m", "z"}},
		"*":                       {[]any{"Z", "a", "m"}, []any{"a", "m", "Z"}},
		"$string($)":              {`{"z":"Z","a":"a","m":"m"}`, `{"a":"a","m":"m","z":"Z"}`},
		`$keys({"b": 1, "a": 2})`: {[]any{"b", "a"}, []any{"b", "a"}},
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		for i, input := range []any{o, plain} {
			v, _, err := x.Eval(t.Context(), input, Options{})
			require.NoError(t, err, src)
			require.Equal(t, want[i], v, src)
		}
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	x, err := Parse("($n := $n + 1; $n + $limit)")
	require.NoError(t, err)
	bindings := map[string]any{"n": int64(1), "limit": int64(10)}
	for range 2 { // assigning does not change the caller's map
		v, _, err := x.Eval(t.Context(), nil, Options{Bindings: bindings})
		require.NoError(t, err)
		require.Equal(t, int64(12), v)
	}
}

// Evaluation never modifies the input, and an expression is safe for concurrent use.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const text = `{"a":[{"b":[1,2]},{"b":[3]}],"c":[]}`
	input := thread(t, text)
	x, err := Parse(`($x := $append(a.b, 4); $r := $reverse(a); [$x[], $r.b[], a[], {"k": c}, $merge(a), a{"k": b}])`)
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if _, _, err := x.Eval(t.Context(), input, Options{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.JSONEq(t, text, toJSON(t, input))
}

func TestFunctionAsResult(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"$count", "[$count]", `{"a": $count}`, "$count ~> $string"} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		_, _, err = x.Eval(t.Context(), nil, Options{})
		var e *Error
		require.ErrorAs(t, err, &e, src)
		require.Equal(t, syntax.CodeFunctionResult, e.Code)
	}
}

// A Go type without a JSON equivalent is opaque and never causes a panic.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	input := map[string]any{"x": struct{ a []int }{}, "m": map[string]string{"a": "b"}, "c": make(chan int)}
	for _, src := range []string{
		"x = x", "x in [x]", "$string(x)", "$keys(x)", "x.a", "$distinct([x, x])", "$type(m)", "$merge(m)", "x & ''",
		"$boolean(c)", "**", "x + 1", "$sum(x)", "x[0]", "$error(x)",
	} {
		x, err := Parse(src)
		require.NoError(t, err, src)
		require.NotPanics(t, func() { _, _, _ = x.Eval(t.Context(), input, Options{}) }, src)
	}
}
