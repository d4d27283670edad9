package syntax

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trees lists the tree of each construct; see dump for the notation.
func trees() []struct{ src, want string } {
	return []struct{ src, want string }{
		{"a", "path@0(.a@0)"},
		{"a.b.c", "path@0(.a@0 .b@2 .c@4)"},
		{"a.b + c", "+@4(path@0(.a@0 .b@2) path@6(.c@6))"},
		{"(a.b).c", "path@0(block@0(path@1(.a@1 .b@3)) .c@6)"},
		{"a.(b.c)", "path@0(.a@0 block@2(path@3(.b@3 .c@5)))"},
		{"`a b`.c", "path@0(.a b@0 .c@6)"},
		{"and.or.in", "path@0(.and@0 .or@4 .in@7)"},
		{"a.and", "path@0(.a@0 .and@2)"},
		{"*.a", "path@0(*@0 .a@2)"},
		{"**.a", "path@0(**@0 .a@3)"},
		{"a.*", "path@0(.a@0 *@2)"},
		{`a."b c"`, "path@0(.a@0 .b c@2)"},
		{`"a b".c`, "path@0(.a b@0 .c@6)"},
		{"a.`1`", "path@0(.a@0 .1@2)"},
		{`"x"`, `"x"@0`},
		{"'x'", `"x"@0`},
		{`'\"\\\/\b\f\n\r\t'`, `"\"\\/\b\f\n\r\t"@0`},
		{`'\u20AC\uD83D\uDE00'`, `"€😀"@0`},
		{`'\uD83D'`, `"�"@0`},
		{`'\uD83Dx'`, `"�x"@0`},
		{`'\uD83D\u0041'`, `"�A"@0`},
		{`'\u00e9'`, `"é"@0`},
		{"0", "0@0"},
		{"12", "12@0"},
		{"1.5", "1.5@0"},
		{"1e3", "1000@0"},
		{"1E+2", "100@0"},
		{"25e-1", "2.5@0"},
		{"-5", "-5@0"},
		{"- 5", "-5@0"},
		{"-a", "neg@0(path@1(.a@1))"},
		{"--5", "5@0"},
		{"-$x", "neg@0($x@1)"},
		{"-(1)", "neg@0(block@1(1@2))"},
		{"-1[0]", "-1@0[0@3]"},
		{"true", "true@0"},
		{"false", "false@0"},
		{"null", "<nil>@0"},
		{"`true`", "path@0(.true@0)"},
		{"$", "$@0"},
		{"$$", "$$@0"},
		{"$x", "$x@0"},
		{"$x.y", "path@0($x@0 .y@3)"},
		{"[]", "array@0()"},
		{"[1,2]", "array@0(1@1 2@3)"},
		{"[1..3]", "array@0(range@2(1@1 3@4))"},
		{"[1..3, 5]", "array@0(range@2(1@1 3@4) 5@7)"},
		{"[[1]]", "array@0(array@1(1@2))"},
		{"a[]", "path@0(.a@0[])+keep"},
		{"a[].b", "path@0(.a@0[] .b@4)+keep"},
		{"a[].*", "path@0(.a@0[] *@4)+keep"},
		{"*[].*", "path@0(*@0[] *@4)+keep"},
		{"a.*[]", "path@0(.a@0 *@2[])+keep"},
		{"a.b[]", "path@0(.a@0 .b@2[])+keep"},
		{"(a)[]", "block@0(path@1(.a@1))[]"},
		{"a[0]", "path@0(.a@0[stage 0@2])"},
		{"a[-1]", "path@0(.a@0[stage -1@2])"},
		{"a[b=1]", "path@0(.a@0[stage =@3(path@2(.b@2) 1@4)])"},
		{"a.b[0]", "path@0(.a@0 .b@2[stage 0@4])"},
		{"(a.b)[0]", "block@0(path@1(.a@1 .b@3))[0@6]"},
		{"a[0][1]", "path@0(.a@0[stage 0@2][stage 1@5])"},
		{"$x[0]", "$x@0[0@3]"},
		{"'t'[0]", `"t"@0[0@4]`},
		{"[1,2][0]", "array@0(1@1 2@3)[0@6]"},
		{"a[0].b[1]", "path@0(.a@0[stage 0@2] .b@5[stage 1@7])"},
		{"$[0].b", "path@0($@0[0@2] .b@5)"},
		{"a.$x[0]", "path@0(.a@0 $x@2[stage 0@5])"},
		{"[1].a", "path@0(array@0(1@1)+whole .a@4)"},
		{"a.[b,c]", "path@0(.a@0 array@2(path@3(.b@3) path@5(.c@5))+whole)"},
		{"a.[b].c", "path@0(.a@0 array@2(path@3(.b@3))+whole .c@6)"},
		{"([1]).a", "path@0(block@0(array@1(1@2)) .a@6)"},
		{"(1; [2]).a", "path@0(block@0(1@1 array@4(2@5)) .a@9)"},
		{"([1].a)", "block@0(path@1(array@1(1@2)+whole .a@5))+whole"},
		{"a[].b.c", "path@0(.a@0[] .b@4 .c@6)+keep"},
		{"a.(b.c[])", "path@0(.a@0 block@2(path@3(.b@3 .c@5[])+keep))"},
		{"{}", "object@0{@0 }"},
		{"{'a': 1}", `object@0{@0 "a"@1:1@6}`},
		{"{'a': 1, b: c}", `object@0{@0 "a"@1:1@6, path@9(.b@9):path@12(.c@12)}`},
		{"a{b: c}", "path@0(.a@0){@1 path@2(.b@2):path@5(.c@5)}"},
		{"a.b{c: d, e: f}", "path@0(.a@0 .b@2){@3 path@4(.c@4):path@7(.d@7), path@10(.e@10):path@13(.f@13)}"},
		{"$x{a: b}", "$x@0{@2 path@3(.a@3):path@6(.b@6)}"},
		{"a{b: c}[0]", "path@0(.a@0[stage 0@8]){@1 path@2(.b@2):path@5(.c@5)}"},
		{"a{b: c}.d", "path@0(.a@0 .d@8){@1 path@2(.b@2):path@5(.c@5)}"},
		{"{'a': 1}.b", `path@0(object@0{@0 "a"@1:1@6} .b@9)`},
		{"()", "block@0()"},
		{"(a)", "block@0(path@1(.a@1))"},
		{"((a))", "block@0(block@1(path@2(.a@2)))"},
		{"(a; b)", "block@0(path@1(.a@1) path@4(.b@4))"},
		{"(a; b;)", "block@0(path@1(.a@1) path@4(.b@4))"},
		{"$x := 1", "bind$x@3(1@6)"},
		{"$x := $y := 2", "bind$x@3(bind$y@9(2@12))"},
		{"($x := 1; $x)", "block@0(bind$x@4(1@7) $x@10)"},
		{"a + b * c", "+@2(path@0(.a@0) *@6(path@4(.b@4) path@8(.c@8)))"},
		{"a * b + c", "+@6(*@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"a - b - c", "-@6(-@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"a / b % c", "%@6(/@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"a & b & c", "&@6(&@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"a = b", "=@2(path@0(.a@0) path@4(.b@4))"},
		{"a != b", "!=@2(path@0(.a@0) path@5(.b@5))"},
		{"a < b", "<@2(path@0(.a@0) path@4(.b@4))"},
		{"a <= b", "<=@2(path@0(.a@0) path@5(.b@5))"},
		{"a > b", ">@2(path@0(.a@0) path@4(.b@4))"},
		{"a >= b", ">=@2(path@0(.a@0) path@5(.b@5))"},
		{"a in b", "in@2(path@0(.a@0) path@5(.b@5))"},
		{"a and b or c", "or@8(and@2(path@0(.a@0) path@6(.b@6)) path@11(.c@11))"},
		{"a or b and c", "or@2(path@0(.a@0) and@7(path@5(.b@5) path@11(.c@11)))"},
		{"a = b and c", "and@6(=@2(path@0(.a@0) path@4(.b@4)) path@10(.c@10))"},
		{"a + b = c", "=@6(+@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"a < b = c", "=@6(<@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"-a.b", "neg@0(path@1(.a@1 .b@3))"},
		{"-a + b", "+@3(neg@0(path@1(.a@1)) path@5(.b@5))"},
		{"-a[0]", "neg@0(path@1(.a@1[stage 0@3]))"},
		{"a.b = c.d", "=@4(path@0(.a@0 .b@2) path@6(.c@6 .d@8))"},
		{"a & b + c", "+@6(&@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"-a * b", "*@3(neg@0(path@1(.a@1)) path@5(.b@5))"},
		{"a ? b : c", "if@2(path@0(.a@0) path@4(.b@4) path@8(.c@8))"},
		{"a ? b", "if@2(path@0(.a@0) path@4(.b@4) _)"},
		{"a ? b ? c : d : e", "if@2(path@0(.a@0) if@6(path@4(.b@4) path@8(.c@8) path@12(.d@12)) path@16(.e@16))"},
		{"a ? b : c ? d : e", "if@2(path@0(.a@0) path@4(.b@4) if@10(path@8(.c@8) path@12(.d@12) path@16(.e@16)))"},
		{"a or b ? c : d", "if@7(or@2(path@0(.a@0) path@5(.b@5)) path@9(.c@9) path@13(.d@13))"},
		{"$x := a ? b : c", "bind$x@3(if@8(path@6(.a@6) path@10(.b@10) path@14(.c@14)))"},
		{"a ?: b", "?:@2(path@0(.a@0) path@5(.b@5))"},
		{"a ?? b", "??@2(path@0(.a@0) path@5(.b@5))"},
		{"a ?? b + c", "??@2(path@0(.a@0) +@7(path@5(.b@5) path@9(.c@9)))"},
		{"a + b ?? c or d", "??@6(+@2(path@0(.a@0) path@4(.b@4)) or@11(path@9(.c@9) path@14(.d@14)))"},
		{"$f()", "call@0($f@0)"},
		{"$f(a)", "call@0($f@0 path@3(.a@3))"},
		{"$f(a, b)", "call@0($f@0 path@3(.a@3) path@6(.b@6))"},
		{"$f(?, a)", "call@0($f@0 _ path@6(.a@6))+partial"},
		{"$f(?, ?)", "call@0($f@0 _ _)+partial"},
		{"$f(a)(b)", "call@0(call@0($f@0 path@3(.a@3)) path@6(.b@6))"},
		{"a.$f()", "path@0(.a@0 call@2($f@2))"},
		{"$f(a)[0]", "call@0($f@0 path@3(.a@3))[0@6]"},
		{"$f(a).b", "path@0(call@0($f@0 path@3(.a@3)) .b@6)"},
		{"a ~> $f", "~>@2(path@0(.a@0) $f@5)"},
		{"a ~> $f(b) ~> $g", "~>@11(~>@2(path@0(.a@0) call@5($f@5 path@8(.b@8))) $g@14)"},
		{"$x[] ~> $f", "~>@5($x@0[] $f@8)[]"},
		{"$f ~> $g[]", "~>@3($f@0 $g@6[])[]"},
		{"a = b ~> $f", "~>@6(=@2(path@0(.a@0) path@4(.b@4)) $f@9)"},
		{"function(){1}", "func@0()(1@11)"},
		{"function($x){$x}", "func@0(x)($x@13)"},
		{"function($x, $y){$x + $y}", "func@0(x y)(+@20($x@17 $y@22))"},
		{"function($x)<n>{$x}", "func@0(x)<1>($x@16)"},
		{"function($x, $y)<s-n?:b> {1}", "func@0(x y)<2>(1@26)"},
		{"function()<>{1}", "func@0()(1@13)"},
		{"λ($x){$x}", "func@0(x)($x@7)"},
		{"function($x){$x}(1)", "call@0(func@0(x)($x@13) 1@17)"},
		{"function", "path@0(.function@0)"},
		{"`function`(1)", "call@0(path@0(.function@0) 1@11)"},
		{"function.a", "path@0(.function@0 .a@9)"},
		{"/ab/", "regex@0/ab/"},
		{`/a\/b/`, `regex@0/a\/b/`},
		{"/[/]/", "regex@0/[/]/"},
		{"/a/i", "regex@0/(?i:a)/"},
		{"/a/im", "regex@0/(?im:a)/"},
		{"/a/ii", "regex@0/(?ii:a)/"},
		{"$match(a, /b+/m)", "call@0($match@0 path@7(.a@7) regex@10/(?m:b+)/)"},
		{"a / b / c", "/@6(/@2(path@0(.a@0) path@4(.b@4)) path@8(.c@8))"},
		{"a[/b/]", "path@0(.a@0[stage regex@2/b/])"},
		{"/[a-z]{2}(b)/", "regex@0/[a-z]{2}(b)/"},
		{"a^(b)", "path@0(.a@0 sort@1(path@3(.b@3)))"},
		{"a^(<b)", "path@0(.a@0 sort@1(path@4(.b@4)))"},
		{"a^(>b, c)", "path@0(.a@0 sort@1(>path@4(.b@4) path@7(.c@7)))"},
		{"a.b^(c)", "path@0(.a@0 .b@2 sort@3(path@5(.c@5)))"},
		{"a^(b).c", "path@0(.a@0 sort@1(path@3(.b@3)) .c@6)"},
		{"a^(b)[0]", "path@0(.a@0 sort@1(path@3(.b@3))[stage 0@6])"},
		{"a[]^(b)", "path@0(.a@0[] sort@3(path@5(.b@5)))+keep"},
		{"$x[]^(b)", "path@0($x@0[] sort@4(path@6(.b@6)))+keep"},
		{"$x^(a)", "path@0($x@0 sort@2(path@4(.a@4)))"},
		{"(a)^(b)", "path@0(block@0(path@1(.a@1)) sort@3(path@5(.b@5)))"},
		{" a /* c */ + b ", "+@11(path@1(.a@1) path@13(.b@13))"},
		{"/* x */ a", "path@8(.a@8)"},
		{"/* x */ /* y */a", "path@15(.a@15)"},
		{"/* /* */ a", "path@9(.a@9)"},
		{"a/**/", "path@0(.a@0)"},
		{"a\n.b", "path@0(.a@0 .b@3)"},
		{"\ta\v+\rb", "+@3(path@1(.a@1) path@5(.b@5))"},
		{"a!=b", "!=@1(path@0(.a@0) path@3(.b@3))"},
		{"é.ü", "path@0(.é@0 .ü@3)"},
		{"a-b", "-@1(path@0(.a@0) path@2(.b@2))"},
		{"$a.b.c", "path@0($a@0 .b@3 .c@5)"},
	}
}

func TestTrees(t *testing.T) {
	t.Parallel()
	for _, c := range trees() {
		root, _, err := Parse(c.src)
		if assert.NoError(t, err, c.src) {
			assert.Equal(t, c.want, dump(root), c.src)
		}
	}
}

// If a construct is cut off inside a token, the error points there.
func TestBrokenTokens(t *testing.T) {
	t.Parallel()
	for _, c := range trees() {
		if strings.Contains(c.src, "/") || strings.Contains(c.src, ")<") { // not made of tokens
			continue
		}
		l := lexer{src: c.src}
		for tok, err := l.next(); tok.kind != endToken; tok, err = l.next() {
			require.NoError(t, err, c.src)
			for broken, code := range map[string]string{"'": "S0101", "`": "S0105", "~": "S0204"} {
				src := c.src[:tok.start] + " " + broken
				root, _, err := Parse(src)
				var e *Error
				if assert.ErrorAs(t, err, &e, src) {
					assert.Equal(t, code, e.Code, src)
					assert.Equal(t, tok.start+1, e.Pos.Offset, src)
				}
				assert.Nil(t, root, src)
			}
		}
	}
}

func TestAssigned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src  string
		want []string
	}{
		{"a + $b", nil},
		{"$x := 1", []string{"x"}},
		{"($x := 1; $y := 2; $z)", []string{"x", "y"}},
		{"$map(a, function($v, $i){$w})", []string{"i", "v"}},
		{"a ? ($x := function($y){$y})", []string{"x", "y"}},
	} {
		_, assigned, err := Parse(c.src)
		require.NoError(t, err, c.src)
		assert.Equal(t, c.want, slices.Sorted(maps.Keys(assigned)), c.src)
		for name, set := range assigned {
			assert.True(t, set, name)
		}
	}
}

// Children returns every node exactly once, in source order.
func TestChildren(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"a", "path@0(.a@0) .a@0"},
		{"1 + $x", "+@2(1@0 $x@4) 1@0 $x@4"},
		{"-$x", "neg@0($x@1) $x@1"},
		{"$x := 1", "bind$x@3(1@6) 1@6"},
		{"(1; 2)", "block@0(1@1 2@4) 1@1 2@4"},
		{"[1, 2..3]", "array@0(1@1 range@5(2@4 3@7)) 1@1 range@5(2@4 3@7) 2@4 3@7"},
		{"{'a': 1}", `object@0{@0 "a"@1:1@6} "a"@1 1@6`},
		{"$x ? 1 : 2", "if@3($x@0 1@5 2@9) $x@0 1@5 2@9"},
		{"$x ? 1", "if@3($x@0 1@5 _) $x@0 1@5"},
		{"$f(1, ?, 2)", "call@0($f@0 1@3 _ 2@9)+partial $f@0 1@3 2@9"},
		{"1 ~> $f", "~>@2(1@0 $f@5) 1@0 $f@5"},
		{"function($x){1}", "func@0(x)(1@13) 1@13"},
		{"$x[1][2]", "$x@0[1@3][2@6] 1@3 2@6"},
		{"*[1]", "*@0[1@2] 1@2"},
		{"$x{1: 2, 3: 4}", "$x@0{@2 1@3:2@6, 3@9:4@12} 1@3 2@6 3@9 4@12"},
		{"$x^(1, >2)", "path@0($x@0 sort@2(1@4 >2@8)) $x@0 sort@2(1@4 >2@8) 1@4 2@8"},
		{"$.*[1]", "path@0($@0 *@2[stage 1@4]) $@0 *@2[stage 1@4] 1@4"},
	} {
		root, _, err := Parse(c.src)
		require.NoError(t, err, c.src)
		var walk func(Node) []string
		walk = func(n Node) []string {
			texts := []string{dump(n)}
			for _, inner := range Children(n) {
				texts = append(texts, walk(inner)...)
			}
			return texts
		}
		assert.Equal(t, c.want, strings.Join(walk(root), " "), c.src)
	}
}

func TestBeginsWhole(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		"[1]": false, "[1].a": true, "([1].a)": true, "(1; [2].a)": true, "(1; 2)": false, "a.[1]": false, "a": false, "1": false,
	} {
		root, _, err := Parse(src)
		require.NoError(t, err, src)
		assert.Equal(t, want, BeginsWhole(root), src)
	}
}
