package bench

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	children     = 200
	stepsOfChild = 3
)

// manyRows measure the cost of a role played by many threads at once, compared with as many independent runs,
// and of showing them after a kill.
func (w *world) manyRows() []row {
	const each = children * stepsOfChild
	family := func(home func(testing.TB) string, args ...string) side {
		return func(b testing.TB) float64 {
			at := home(b)
			return timed(func(b testing.TB) { w.uwf(b, at, w.running(b, "many.yaml", args...)...) })(b) / each
		}
	}
	empty := func(testing.TB) string { return w.path(fmt.Sprint("many-", w.fresh(1))) }
	independent := func(b testing.TB) float64 {
		home := empty(b)
		return timed(func(b testing.TB) {
			require.NoError(b, atOnce(2, children, func(i int) error {
				_, err := output(w.command(b, home, w.program("uwf"), append([]string{"--quiet"}, w.running(b, "one.yaml")...)...))
				return err
			}))
		})(b) / each
	}
	name := fmt.Sprintf("many/%d children of %d steps", children, stepsOfChild)
	rows := []row{
		versus(name, family(empty, "--parallel", "2"), 1.25, "as many runs, 2 at once", independent),
		versus(name+", limited", family(empty, "--parallel", "2", "--max-tokens", "1000000"), 1.25, "as many runs, 2 at once", independent),
		versus(name+" beside 10,000 threads", family(func(b testing.TB) string { return w.among(b, 10_000).home }, "--parallel", "2"), 1.5, "in a home of their own", family(empty, "--parallel", "2")),
	}
	for i := range rows {
		rows[i].unit = "ms/step"
	}
	return append(rows, versus(fmt.Sprintf("many/what is due among %d", children), timed(w.showMany), 1, "1 s", constant(1000)))
}

// running returns the arguments that run a workflow of this family.
func (w *world) running(b testing.TB, name string, args ...string) []string {
	const role = "{ description: Works., goal: g, frontmatter: { type: object, properties: { $status: { const: again } }, required: [$status] } }"
	w.file(b, "one.yaml", fmt.Sprintf(`name: one
description: Three steps.
roles: { worker: %s, b: %[1]s, c: %[1]s }
graph: { $START: { _: worker }, worker: { again: b }, b: { again: c }, c: { again: $END } }
`, role))
	w.file(b, "many.yaml", fmt.Sprintf(`name: many
description: Many of three steps.
roles: { all: { description: All., each: { of: "[1..%d]", workflow: ./one.yaml, prompt: "{{item}}" } } }
graph: { $START: { _: all }, all: { done: $END, failed: $END } }
`, children))
	agent := w.program("uwf-mock") + " --mock-data " + w.file(b, "any.yaml", "repeat: true\nsteps: [{ output: \"---\\n$status: again\\n---\\nDone.\\n\", usage: { turns: 1, inputTokens: 1, outputTokens: 1 } }]\n")
	return append([]string{"run", w.path(name), "-p", "task", "--cwd", w.dir, "--agent", agent}, args...)
}

// showMany shows a thread whose children have all been started, none of which has ended.
func (w *world) showMany(b testing.TB) {
	p := fixture(w, "many that are due", func() place {
		p := place{home: w.path("many-due")}
		w.running(b, "many.yaml")
		p.thread = w.uwf(b, p.home, "thread", "start", w.path("many.yaml"), "-p", "task", "--cwd", w.dir, "--format", "text")
		w.uwf(b, p.home, "thread", "step", p.thread)
		return p
	})
	w.uwf(b, p.home, "thread", "show", p.thread)
}
