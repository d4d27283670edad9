package mustache

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// object parses a JSON object to the value types that a store returns.
func object(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func render(t *testing.T, template string, stack ...any) string {
	t.Helper()
	tpl, err := Parse(template)
	require.NoError(t, err)
	out, err := tpl.Render(stack...)
	require.NoError(t, err)
	return out
}

func TestRender(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, template, view, want string }{
		{"text only", "plain { text } }}", `{}`, "plain { text } }}"},
		{"empty", "", `{}`, ""},
		{"three spellings, none escapes", `{{a}}{{{a}}}{{&a}}{{ & a }}`, `{"a":"<&\">"}`, `<&"><&"><&"><&">`},
		{"blank inside tags", "{{  a  }}{{{ a }}}", `{"a":1}`, "11"},
		{"dotted path", "{{a.b.c}}", `{"a":{"b":{"c":"x"}}}`, "x"},
		{"index and length", "{{xs.1}} {{xs.length}} {{s.length}} {{xs.0.k}}", `{"xs":[{"k":9},"y"],"s":"añ😀"}`, "y 2 4 9"},
		{"keys with spaces and dollars", "{{a b}} {{$status}}", `{"a b":"v","$status":"done"}`, "v done"},
		{"null exists and prints nothing", "[{{n}}]", `{"n":null}`, "[]"},
		{"what a value holds is no template", "{{a}}", `{"a":"{{b}}"}`, "{{b}}"},
		{"list joined by commas, nested flattened, null empty", "{{xs}}", `{"xs":["a",[1,[true,null]],null,{"k":"v"}]}`, `a,1,true,,,{"k":"v"}`},
		{"object as JSON, keys sorted, nothing escaped", "{{o}}", `{"o":{"b":[1.5,null,"<"],"a":{},"c":[]}}`, `{"a":{},"b":[1.5,null,"<"],"c":[]}`},
		{"list joined by words of its own", `{{xs | join: ", "}};{{{xs|join:'\n'}}};{{ o.ys | join: ". " }};{{a | join: "-"}}`, `{"xs":["a",[1,2],null],"o":{"ys":[{"k":1},2]},"a":"x"}`, "a, 1,2, ;a\n1,2\n;{\"k\":1}. 2;x"},
		{"section over a list", "{{#xs}}({{.}}){{/xs}}", `{"xs":[1,"b",null]}`, "(1)(b)()"},
		{"section over objects", "{{#xs}}{{k}}{{outer}} {{/xs}}", `{"xs":[{"k":1},{"k":2}],"outer":"!"}`, "1! 2! "},
		{"inner name hides outer", "{{#o}}{{a}}{{/o}}{{a}}", `{"a":1,"o":{"a":2}}`, "21"},
		{"a path is looked up as a whole", "{{#o}}{{a.b}}{{/o}}", `{"a":{"b":1},"o":{"a":{}}}`, "1"},
		{"length of a list item", "{{#xs}}{{length}};{{0}} {{/xs}}", `{"xs":[[7,8]]}`, "2;7 "},
		{"bare length in a string section is a field", "{{#s}}{{length}}{{/s}}", `{"s":"abc","length":"long"}`, "long"},
		{"section over true", "{{#f}}{{x}}{{/f}}", `{"f":true,"x":1}`, "1"},
		{"falsy values", "{{#a}}a{{/a}}{{#b}}b{{/b}}{{#c}}c{{/c}}{{#d}}d{{/d}}{{#e}}e{{/e}}{{#f}}f{{/f}}|", `{"a":false,"b":0,"c":"","d":[],"e":null}`, "|"},
		{"inverted", "{{^a}}A{{/a}}{{^b}}B{{/b}}{{^c}}C{{/c}}{{^gone}}D{{/gone}}", `{"a":[],"b":"x","c":0}`, "ACD"},
		{"an empty object is something", "{{#o}}yes{{/o}}", `{"o":{}}`, "yes"},
		{"comment", "a{{! any }thing\n {{ here }}b", `{}`, "ab"},
		{"set delimiters", "{{=<% %>=}}<% a %> {{a}}<%={{ }}=%>{{a}}", `{"a":"v"}`, "v {{a}}v"},
		{"standalone section", "a\n  {{#f}}\n b\n\t{{/f}}\nc", `{"f":true}`, "a\n b\nc"},
		{"standalone comment over lines", "a\n {{! x\n y }} \nb", `{}`, "a\nb"},
		{"standalone at both ends", "{{#f}}\nb\n{{/f}}", `{"f":1}`, "b\n"},
		{"standalone delimiters", "{{=| |=}}\nb|x|", `{"x":1}`, "b1"},
		{"carriage returns", "a\r\n{{#f}}\r\nb\r\n{{/f}}\r\nc", `{"f":true}`, "a\r\nb\r\nc"},
		{"text beside a tag keeps the line", "a\n{{#f}} b\n{{/f}}\nc", `{"f":true}`, "a\n b\nc"},
		{"a printing tag keeps the line", "{{#f}}{{x}}\n{{/f}}\nc", `{"f":true,"x":""}`, "\nc"},
		{"braces around a tag", `{"k":{{x}}}`, `{"x":1}`, `{"k":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, render(t, tt.template, object(t, tt.view)))
		})
	}
}

func TestNumbersPrintAsInJavaScript(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value any
		want  string
	}{
		{1e21, "1e+21"}, {1e20, "100000000000000000000"}, {-1.5e300, "-1.5e+300"},
		{1e-7, "1e-7"}, {1e-6, "0.000001"}, {1.25e-10, "1.25e-10"}, {5e-324, "5e-324"},
		{0.1, "0.1"}, {math.Copysign(0, -1), "0"}, {3.0, "3"}, {1234567.0, "1234567"},
		{int64(9007199254740992), "9007199254740992"}, {uint64(18446744073709551615), "18446744073709551615"},
		{7, "7"}, {json.Number("1e3"), "1000"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, render(t, "{{n}}", map[string]any{"n": tt.value}))
	}
}

func TestStackIsSearchedFromTheLastValue(t *testing.T) {
	t.Parallel()
	globals := map[string]any{"prompt": "global", "other": "seen"}
	output := map[string]any{"prompt": "own"}
	require.Equal(t, `own seen {"prompt":"own"}`, render(t, "{{prompt}} {{other}} {{.}}", globals, output))
	require.Equal(t, "[]", render(t, "[{{.}}]"), "no value at all is null")
}

func TestMissingVariable(t *testing.T) {
	t.Parallel()
	view := object(t, `{"plan":{"steps":1,"branch":"b"},"question":"?"}`)
	tests := []struct{ name, template string }{
		{"nearest name", "x\n  {{plam}}"},
		{"whole path and the nearest at its end", "{{plan.brunch}}"},
		{"nothing is near", "ä{{zzzzzzzz}}"},
		{"into a string", "{{question.x}}"},
		{"inside a section", "{{#plan}}{{steqs}}{{/plan}}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tpl, err := Parse(tt.template)
			require.NoError(t, err)
			_, err = tpl.Render(view)
			var missing *MissingError
			require.ErrorAs(t, err, &missing)
			prosetest.Error(t, err)
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ template string }{
		{"x {{a"},
		{"x {{{a}}"},
		{"{{a\nb}}"},
		{"{{a {{b}}"},
		{"\n {{#open}}"},
		{"{{#a}}{{/b}}"},
		{"{{/b}}"},
		{"{{ }}"},
		{"{{a..b}}"},
		{"{{=a=}}"},
		{"x{{> p}}"},
		{strings.Repeat("{{!}}", 10_001)},
		{strings.Repeat("{{#a}}", 65)},
	}
	for _, tt := range tests {
		_, err := Parse(tt.template)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, tt.template)
		prosetest.Error(t, err, tt.template)
	}
}

func TestTagsMarkUsedFields(t *testing.T) {
	t.Parallel()
	tpl, err := Parse("{{! c }}{{a.b}}\n{{#xs}}{{^y}}é{{{.}}}{{/y}}{{/xs}}{{=| |=}}|&z|")
	require.NoError(t, err)
	require.Equal(t, []Tag{
		{Kind: Variable, Name: "a.b", Path: []string{"a", "b"}, Line: 1, Column: 9, Source: "{{a.b}}"},
		{Kind: Section, Name: "xs", Path: []string{"xs"}, Line: 2, Column: 1, Source: "{{#xs}}"},
		{Kind: Inverted, Name: "y", Path: []string{"y"}, Within: []string{"xs"}, Line: 2, Column: 8, Source: "{{^y}}"},
		{Kind: Variable, Name: ".", Within: []string{"xs"}, Line: 2, Column: 15, Source: "{{{.}}}"},
		{Kind: Variable, Name: "z", Path: []string{"z"}, Line: 2, Column: 44, Source: "|&z|"},
	}, tpl.Tags())
}

func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	list := make([]any, 1000)
	for i := range list {
		list[i] = "x"
	}
	view := map[string]any{"xs": list, "big": strings.Repeat("x", maxOutput)}
	view["deep"] = deepList(100_000)
	view["tree"] = map[string]any{"deep": deepList(100_000)}
	for _, template := range []string{
		"{{#xs}}{{#xs}}{{#xs}}{{/xs}}{{/xs}}{{/xs}}",      // a billion iterations that print nothing
		"{{#xs}}{{#xs}}{{#xs}}{{.}}{{/xs}}{{/xs}}{{/xs}}", // and that print
		"{{big}}{{big}}", "{{deep}}", "{{tree}}", "{{#xs}}{{xs}}{{big}}{{/xs}}",
	} {
		tpl, err := Parse(template)
		require.NoError(t, err)
		_, err = tpl.Render(view)
		require.ErrorIs(t, err, ErrTooLarge, template)
	}
}

func deepList(depth int) any {
	var v any = "x"
	for range depth {
		v = []any{v}
	}
	return v
}
