package jsonata

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
)

// Expressions come from strangers: whatever they are, they are refused with a
// place inside them, or evaluate within bounds.
func FuzzParse(f *testing.F) {
	cases, _ := loadCases(f)
	for _, c := range cases {
		f.Add(c.Expr)
	}
	for _, seed := range []string{"/x/", "function($x){$x}", "a^(b)", "a@$b", "a#$i", "%", "|a|b|", "$map(a)", "'\\ud834", "`", "a[][]{}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		x, err := Parse(src)
		if err != nil {
			wellFormed(t, src, err)
			return
		}
		if x.String() != src {
			t.Fatalf("%q became %q", src, x.String())
		}
		fields, all := x.Fields()
		for _, r := range fields {
			if !x.Uses(r.Name) || r.Pos.Offset >= len(src) {
				t.Fatalf("%q: bad reference %v", src, r)
			}
		}
		if all != x.Uses("no field has this name") {
			t.Fatalf("%q: Fields and Uses disagree", src)
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
	f.Fuzz(func(t *testing.T, src, text string) {
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

// sameWithoutUnused drops the fields that an expression does not use.
func sameWithoutUnused(t *testing.T, x *Expr, input any) {
	t.Helper()
	o, ok := input.(map[string]any)
	if !ok {
		return
	}
	used := map[string]any{}
	for k, v := range o {
		if x.Uses(k) {
			used[k] = v
		}
	}
	if len(used) < len(o) && outcome(t, x, input) != outcome(t, x, used) {
		t.Fatalf("%q uses more than Uses says", x)
	}
}

func wellFormed(t *testing.T, src string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code == "" || e.Message == "" || e.Pos != position(src, e.Pos.Offset) {
		t.Fatalf("%q: bad error %#v", src, err)
	}
	if len(e.Message) > 1000 && e.Code != "D3137" && e.Code != "D3141" {
		t.Fatalf("%q: the message has %d bytes", src, len(e.Message))
	}
	if math.Max(float64(len(e.Value)), float64(len(e.Token))) > 1000 && e.Code == CodeLeftOut {
		t.Fatalf("%q: the error is too long", src)
	}
}
