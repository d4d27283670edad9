package jsonata

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/united-workforce/uwf/moderator/jsonata/syntax"
	"github.com/united-workforce/uwf/util/fuzztest"
)

// Expressions are untrusted: each is either rejected with a position inside it or evaluates within the
// bounds.
func FuzzParse(f *testing.F) {
	cases, _ := loadCases(f)
	for _, c := range cases {
		f.Add(c.Expr)
	}
	for _, seed := range []string{"/x/", "function($x){$x}", "a^(b)", "a@$b", "a#$i", "%", "|a|b|", "$map(a)", "function($x)<a<s>-:n>{$x}(/a(b)?/im)^(>$x)", "'\\ud834", "`", "a[][]{}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		defer fuzztest.Bounded(t)()
		x, err := Parse(src)
		if err != nil {
			wellFormed(t, src, err)
			return
		}
		r := x.Reads()
		for _, p := range r.Paths[:min(len(r.Paths), 100)] {
			if !touches(r, p.Names[0]) || p.Pos != syntax.Position(src, p.Pos.Offset) {
				t.Fatalf("%q: bad path %v", src, p)
			}
		}
		if r.All != touches(r, "no field has this name") {
			t.Fatalf("%q: Whole and Touches disagree", src)
		}
	})
}

func FuzzEval(f *testing.F) {
	cases, datasets := loadCases(f)
	for _, c := range cases {
		input := string(c.Data)
		if c.Dataset != "" {
			input = string(datasets[c.Dataset])
		}
		f.Add(c.Expr, input)
	}
	f.Add("s[-1].a = s[-2].a ? s[-1][0] : d", `{"s":[1,{"a":1},[{"a":[2]}]],"d":5}`)
	for _, seed := range []string{"$s.a.b", "$s.*", "$s.(a)", "$lookup($s, 'a')", "($x := $s; $x.a)", "$s{'k': a}", "$s[a = 1].b",
		"$s^(a)", "$s ~> $keys", "$s.a[$$.b = 1]", "[1].$s.a", "$s ?: 1", "($s := 1; $s)", "$s.$s.a", "$map([1], function($i){$s.b})"} {
		f.Add(seed, `{"a":{"b":[1]},"b":2}`)
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		defer fuzztest.Bounded(t)()
		var input any
		if json.Unmarshal([]byte(text), &input) != nil {
			return
		}
		x, err := Parse(src)
		if err != nil {
			return
		}
		v, defined, err := x.Eval(t.Context(), input, Options{MaxSteps: 20_000, MaxItems: 20_000, MaxBytes: 1 << 16})
		if err != nil {
			wellFormed(t, src, err)
			return
		}
		if !defined && v != nil {
			t.Fatalf("%q has no value but %v", src, v)
		}
		Truthy(v, defined)
		if _, err := json.Marshal(v); err != nil {
			t.Fatalf("%q is no JSON value: %v", src, err)
		}
		sameWithoutUnused(t, x, input)
	})
}

// sameWithoutUnused checks that the result doesn't depend on fields and items outside Reads.
func sameWithoutUnused(t *testing.T, x *Expr, input any) {
	t.Helper()
	o, ok := input.(map[string]any)
	if !ok {
		return
	}
	reads, used := x.Reads(), map[string]any{}
	for k, v := range o {
		if !touches(reads, k) {
			continue
		}
		used[k] = v
		items, isArray := v.([]any)
		if n, ok := reads.Newest(k); ok && isArray {
			used[k] = items[max(0, len(items)-n):]
		}
	}
	if outcome(t, x, input) != outcome(t, x, used) {
		t.Fatalf("%q looks at more than Reads says", x.src)
	}
	bound := map[string]any{}
	for k, v := range o {
		if slices.ContainsFunc(reads.Bound, func(p Path) bool { return len(p.Names) == 1 || p.Names[1] == k }) {
			bound[k] = v
		}
	}
	if outcomeOver(t, x, nil, o) != outcomeOver(t, x, nil, bound) {
		t.Fatalf("%q looks at more of a variable than Reads says", x.src)
	}
}

func wellFormed(t *testing.T, src string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code == "" || e.Message == "" || e.Pos != syntax.Position(src, e.Pos.Offset) {
		t.Fatalf("%q: bad error %#v", src, err)
	}
	if own := e.Code == "D3137" || e.Code == "D3141"; !own && len(e.Message)+len(e.Hint) > 1000 {
		t.Fatalf("%q: the error is too long", src)
	}
}

// touches reports whether an expression can use a field of its input.
func touches(r Reads, field string) bool {
	return r.All || slices.ContainsFunc(r.Paths, func(p Path) bool { return p.Names[0] == field })
}
