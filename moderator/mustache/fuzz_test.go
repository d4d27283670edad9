package mustache

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/util/fuzztest"
)

// Templates are untrusted: each either renders within the bounds or is rejected with a position inside it.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "{{a}}", "{{{a}}}", "{{&o.k}}", "{{#xs}}{{.}}{{/xs}}", "{{^xs}}x{{/xs}}",
		"{{! c }}", "{{=<% %>=}}<%a%>", "{{= =}}", "{{>p}}", "{{#a}}", "{{/a}}", "{{", "{{{a}}",
		"a\n  {{#xs}}\r\n- {{.}}\n{{/xs}}\n", "{{#xs}}{{#xs}}{{#xs}}{{xs}}{{/xs}}{{/xs}}{{/xs}}", "{{a.length.x}}", "{{xs.01}}",
		`{{xs | join: ", "}}`, `{{{o.k|join:'\n'}}}`, `{{xs | join: "}}`,
	} {
		f.Add(seed)
	}
	view := map[string]any{
		"a": "text", "n": nil, "t": true, "f": 1.5,
		"xs": []any{int64(1), "two", []any{nil, map[string]any{"k": "v"}}},
		"o":  map[string]any{"k": map[string]any{"a": "deep"}},
	}
	f.Fuzz(func(t *testing.T, src string) {
		defer fuzztest.Bounded(t)()
		tpl, err := Parse(src)
		if err != nil {
			e, ok := err.(*SyntaxError)
			if !ok || e.Line < 1 || e.Column < 1 || e.Line > strings.Count(src, "\n")+1 {
				t.Fatalf("%q: bad error %#v", src, err)
			}
			return
		}
		out, err := tpl.Render(view)
		if len(out) > maxOutput {
			t.Fatalf("%q renders %d bytes", src, len(out))
		}
		if !strings.Contains(src, "{{") && (err != nil || out != src) {
			t.Fatalf("text without tags changed: %q became %q, %v", src, out, err)
		}
	})
}
