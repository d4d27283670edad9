package workflowtext_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/fuzztest"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// FuzzAnswer checks that the short form of an answer is either rejected or is a JSON Schema that compiles,
// and that its workflow reads back as the same nodes.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"{ $status: [yes, no], n: integer, tags: [string], why: string?, k: integer = 2 }", "{}", "{ a: {}, b: [{ c: string }] }",
		"{ s: string = , q: 'string = \"a = b\"', f: number = 1e3, b: boolean = true, i: integer = -0 }", "{ e: [1, 2.5, true, 'x y'] }",
		"{ raw: { schema: { type: string, pattern: '^a', default: x } }, schema: string, o: { schema: string } }", "[string]",
		"{ a: [a], b: [string, integer], c: [], d: string = \"\\u0000\" }", "{ $status: string, title: string, $ref: string }",
		"{ properties: object, required: [required, type], $id: number? }", "{ s: string = \\ud800, '': string }",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		defer fuzztest.Bounded(t)()
		def, err := workflow.Parse(workflow.Source{Data: []byte("name: x\ndescription: d\nroles:\n  a:\n    prompt: p\n    answer: " +
			answer + "\ngraph: { $START: a, a: [$END] }\n")})
		if err != nil {
			return
		}
		for _, schema := range def.Schemas {
			_, err := jsonschema.Compile(schema)
			require.NoError(t, err)
		}
		requireSame(t, def)
	})
}
