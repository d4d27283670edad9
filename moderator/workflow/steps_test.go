package workflow_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// planned returns a workflow with a cycle, parts and a command, with the given prompt on the edge
// check.failed and edits as pairs of old and new text.
func planned(edge string, edits ...string) string {
	text := `name: base
description: d
inputs: { topic: { schema: { type: string } } }
conditions: { big: "1 = 1" }
roles:
  plan:
    description: d
    goal: g
    schema:
      oneOf:
        - { type: object, properties: { $status: { const: ready }, slug: { type: string }, size: { type: integer }, kind: { enum: [bug, feature] } }, required: [$status, slug, kind] }
        - { type: object, properties: { $status: { const: unclear }, question: { type: string } }, required: [$status, question] }
  impl: { description: d, goal: g }
  check: { description: d, run: [make] }
  review:
    description: d
    goal: g
    schema: { type: object, properties: { $status: { enum: [ok, no] }, comments: { type: string } }, required: [$status] }
  fix-up: { description: d, goal: g }
  log: { description: d, run: [echo, hello] }
  spread: { description: d, each: { of: "[1, 2]", role: fix, prompt: "{{item}}" }, join: "{}", schema: { type: object } }
  both: { description: d, all: { a: { role: fix, prompt: x }, b: { role: log, prompt: y } } }
  fix: { description: d, goal: g }
graph:
  $START: { _: plan }
  plan: { ready: impl, unclear: { role: $SUSPEND, prompt: "{{question}}" } }
  impl: { _: check }
  check: { passed: review, failed: EDGE }
  review: { ok: spread, no: impl }
  spread: { _: both }
  both: { done: log, failed: log }
  log: { passed: fix-up, failed: fix-up }
  fix-up: { _: $END }
`
	text = strings.Replace(text, "EDGE", edge, 1)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic(edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

func prompting(template string) string { return "{ role: impl, prompt: '" + template + "' }" }

func TestEarlierAnswersInTemplates(t *testing.T) {
	t.Parallel()
	for template, notices := range map[string]int{
		"{{$steps.plan.slug}} {{$steps.plan.kind.length}} {{$steps.impl.answer}} {{$steps.check.output}}": 0,
		"{{#$steps.review}}{{comments}}{{#comments}}x{{/comments}}{{/$steps.review}}":                     0,
		"{{#$steps.review.comments}}{{.}}{{$steps.review.comments}}{{/$steps.review.comments}}x":          0,
		"{{^$steps.spread}}never{{/$steps.spread}}{{#$steps.nobody}}{{x}}{{/$steps.nobody}}":              0,
		"x{{#$steps.spread}}{{$steps.spread.x}}{{y}}{{/$steps.spread}}":                                   0,
		"x{{#$steps}}{{plan.slug}}{{/$steps}}":                                                            0,
		"{{$steps.plan}}":                                                                                 0,
		"{{$steps.review.comments}}":                                                                      1, // review is possible
		"{{$steps.plan.size}}":                                                                            1, // certain, but the field is optional
		"x{{$body}}":                                                                                      1, // always empty
	} {
		def, err := parse(planned(prompting(template)))
		require.NoError(t, err, template)
		require.Len(t, def.Notices, notices, template)
		require.Equal(t, protocol.Language3, def.Language, template)
		prosetest.Text(t, strings.Join(def.Notices, "\n"), template)
	}
	for _, template := range []string{
		"{{$steps.plan.question}}", // certain, but only with the status ready
		"{{$steps.plan.slgu}}", "{{$steps.plna.slug}}", "{{$steps}}", "{{$steps.spread.x}}", "{{$steps.fix.answer}}", "{{$steps.log.output}}",
		"{{$body.x}}", "{{#$steps.review}}{{coments}}{{/$steps.review}}",
	} {
		prosetest.Error(t, accepts(planned(prompting(template))), template)
	}
	def, err := parse(planned(prompting("{{output}}")))
	require.NoError(t, err)
	require.Zero(t, def.Language, "nothing new is used")
}

func TestEarlierAnswersElsewhere(t *testing.T) {
	t.Parallel()
	const use = "run: [echo, hello]"
	for name, c := range map[string]struct {
		edits []string
		wrong bool
		notes int
	}{
		"a location":                           {[]string{"ready: impl", "ready: { role: impl, location: '{{$steps.plan.slug}}' }"}, false, 0},
		"a directory in a command":             {[]string{use, "run: [ls, '{{$artifacts}}']"}, false, 0},
		"a directory in a prompt":              {[]string{"prompt: x", "prompt: 'Look into {{$artifacts}}'"}, false, 0},
		"a directory in a location":            {[]string{"ready: impl", "ready: { role: impl, location: '{{$artifacts}}' }"}, true, 0},
		"a directory in a condition":           {[]string{"impl: { _: check }", "impl: [{ role: check, when: \"$artifacts = ''\" }, check]"}, true, 0},
		"the end":                              {[]string{"fix-up: { _: $END }", "fix-up: { _: { role: $END, prompt: '{{$steps.both.results}}' } }"}, false, 0},
		"a body":                               {[]string{"fix-up: { _: $END }", "fix-up: { _: { role: $END, prompt: '{{$body}}' } }"}, false, 0},
		"the start":                            {[]string{"_: plan ", "_: { role: plan, prompt: '{{$steps.plan.slug}}' } "}, true, 0},
		"a body at the start":                  {[]string{"_: plan ", "_: { role: plan, prompt: '{{$body}}' } "}, true, 0},
		"going on":                             {[]string{"_: plan }", "_: plan, resume: { role: plan, prompt: '{{$steps.fix-up.answer}}' } }"}, false, 0},
		"a command, also as a part":            {[]string{use, "run: [echo, '{{$steps.plan.slug}}']"}, true, 0},
		"a body of it":                         {[]string{use, "run: [echo, 'x{{$body}}']"}, true, 2},
		"a command":                            {[]string{use, "run: [echo, '{{$steps.plan.slug}}']", "role: log, prompt: y", "role: fix, prompt: y"}, false, 0},
		"a command, by an edge too early":      {[]string{"run: [make]", "run: [make, '{{$steps.review.comments}}']"}, false, 1},
		"a part":                               {[]string{"prompt: x", "prompt: '{{$steps.plan.slug}}'"}, false, 0},
		"an item":                              {[]string{`prompt: "{{item}}"`, `prompt: "{{item}} {{$steps.plan.slgu}}"`}, true, 0},
		"a list":                               {[]string{`"[1, 2]"`, `"[$steps.plan.size, $steps.review.comments]"`}, false, 0},
		"a list of nobody":                     {[]string{`"[1, 2]"`, `"$steps.log.output"`}, true, 0},
		"a list of a role that does not exist": {[]string{`"[1, 2]"`, `"$steps.plna.size"`}, true, 0},
		"a join":                               {[]string{`join: "{}"`, `join: "{'n': $steps.plan.size + $count(results)}"`}, false, 0},
		"a join of a part":                     {[]string{`join: "{}"`, `join: "{'n': $steps.fix.answer}"`}, true, 0},
		"a join with a misspelt field":         {[]string{`join: "{}"`, `join: "{'n': $steps.plan.sise}"`}, true, 0},
		"a join that asks":                     {[]string{`join: "{}"`, `join: "{'n': $exists($steps.log.output)}"`}, false, 0},
		"a condition":                          {[]string{"fix-up: { _: $END }", "fix-up: [{ role: $END, when: \"$steps.plan.kind = 'bug' and $body != ''\" }, $END]"}, false, 0},
		"a condition never true":               {[]string{"fix-up: { _: $END }", "fix-up: [{ role: $END, when: \"$steps.plan.kind = 'bgu'\" }, $END]"}, true, 0},
		"a condition too early":                {[]string{"impl: { _: check }", "impl: [{ role: check, when: \"$steps.spread.x = 1\" }, check]"}, true, 0},
		"a condition with a dash":              {[]string{"fix-up: { _: $END }", "fix-up: [{ role: $END, when: \"$steps.fix-up.answer = ''\" }, $END]"}, true, 0},
		"a condition with backquotes":          {[]string{"fix-up: { _: $END }", "fix-up: [{ role: $END, when: \"$steps.`fix-up`.answer = ''\" }, $END]"}, false, 0},
		"a condition of a part":                {[]string{"role: log, prompt: y", "role: fix, prompt: y, when: '$steps.plan.size > 3'"}, false, 0},
		"a condition of a part too early":      {[]string{"role: log, prompt: y", "role: fix, prompt: y, when: '$steps.log.exitCode > 3'"}, true, 0},
		"a computed answer":                    {[]string{`each: { of: "[1, 2]", role: fix, prompt: "{{item}}" }, join: "{}"`, `compute: "{ 'n': $steps.plan.size, 'm': $steps.review.comments }"`}, false, 0},
		"a computed answer of nobody":          {[]string{`each: { of: "[1, 2]", role: fix, prompt: "{{item}}" }, join: "{}"`, `compute: "{ 'n': $steps.plan.sise }"`}, true, 0},
		"one of several edges":                 {[]string{"no: impl", "no: [{ role: plan, when: big }, impl]", "1 = 1", "$steps.impl.answer = ''"}, false, 0},
		"a named condition":                    {[]string{"1 = 1", "$steps.review.comments = 'x'", "impl: { _: check }", "impl: [{ role: check, when: big }, check]"}, false, 0},
		"a named condition too early":          {[]string{"1 = 1", "$steps.log.output = 'x'", "impl: { _: check }", "impl: [{ role: check, when: big }, check]"}, true, 0},
		"a role without a node":                {[]string{"_: plan }", "_: plan, resume: { role: plan, prompt: '{{$steps.alone.answer}}' } }", "  fix: {", "  alone: { description: d, goal: g }\n  fix: {"}, true, 0},
		"a field of that name":                 {[]string{"comments: { type: string }", "$steps: { type: object }", "no: impl", "no: { role: impl, prompt: '{{$steps.plan.slug}}' }"}, false, 2},
	} {
		def, err := parse(planned("impl", c.edits...))
		if c.wrong {
			prosetest.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, def.Notices, c.notes, name)
		if name == "a field of that name" {
			require.Zero(t, def.Language, name)
		} else {
			require.Equal(t, protocol.Language3, def.Language, name)
		}
		prosetest.Text(t, strings.Join(def.Notices, "\n"), name)
	}
}

// An edge for a failure leaves a role that hasn't answered in this visit.
func TestEarlierAnswersAfterAFailure(t *testing.T) {
	t.Parallel()
	const failed, triage = "failed: impl }", "failed: impl, $error: { role: triage, prompt: 'EDGE' } }\n  triage: { _: { role: impl, prompt: '{{$steps.check.output}}' } }"
	for template, notices := range map[string]int{
		"{{$steps.plan.slug}} {{error}} {{tries}}": 1, // for the edge back from triage
		"{{$steps.check.output}}":                  2,
		"{{$steps.review.comments}}":               2,
		"{{$body}}x":                               2,
	} {
		text := planned("impl", failed, strings.Replace(triage, "EDGE", template, 1), "  fix-up: { d", "  triage: { description: d, goal: g }\n  fix-up: { d")
		def, err := parse(text)
		require.NoError(t, err, template)
		require.Len(t, def.Notices, notices, template)
		prosetest.Text(t, strings.Join(def.Notices, "\n"), template)
	}
	for _, template := range []string{"{{$steps.log.output}}", "{{output}}"} {
		text := planned("impl", failed, strings.Replace(triage, "EDGE", template, 1), "  fix-up: { d", "  triage: { description: d, goal: g }\n  fix-up: { d")
		prosetest.Error(t, accepts(text), template)
	}
}

// The inputs of a workflow run by a part can use them, at any depth.
func TestEarlierAnswersInVars(t *testing.T) {
	t.Parallel()
	child := workflow.Definition{Workflow: protocol.Workflow{Name: "child", Inputs: map[string]protocol.Input{"list": {}}}}
	for vars, wrong := range map[string]bool{
		"{ list: '{{$steps.plan.slug}}' }": false, "{ list: [{ a: '{{$steps.plan.slug}}' }] }": false, "{ list: [{ a: '{{$steps.log.output}}' }] }": true,
		"{ list: ['{{nothing}}'] }":  false, // unchanged
		"{ list: '{{$artifacts}}' }": true, "{ list: ['{{$artifacts}}'] }": true,
	} {
		text := planned("impl", "a: { role: fix, prompt: x }", "a: { workflow: ./child.yaml, vars: "+vars+" }")
		def, err := workflow.Parse(workflow.Source{File: "base.yaml", Data: []byte(text), Workflow: func(string) (workflow.Used, error) {
			return workflow.Used{Hash: "0000000000001", Definition: child}, nil
		}})
		if wrong {
			prosetest.Error(t, err, vars)
			continue
		}
		require.NoError(t, err, vars)
		require.Equal(t, strings.Contains(vars, "$steps"), def.Language == protocol.Language3, vars)
	}
}

// Problems of an incomplete file have positions.
func TestEarlierAnswersInBrokenFiles(t *testing.T) {
	t.Parallel()
	whole := planned(prompting("{{$steps.plan.slug}}{{#$steps.review}}{{comments}}{{/$steps.review}}{{$body}}{{$artifacts}}"),
		"_: plan }", "_: plan, resume: { role: plan, prompt: '{{$steps.fix-up.answer}}{{$steps.fix.answer}}' } }", `join: "{}"`, `join: "{'n': $steps.plan.size, 'm': $steps.log.output}"`,
		"run: [echo, hello]", "run: [echo, '{{$steps.spread.n}}', '{{$body}}']", "fix-up: { _: $END }", "fix-up: [{ role: $END, when: big }, { role: plan, when: '$steps.both.results' }, spread]", "1 = 1", "$steps.review.comments = 'x'")
	words := []string{"plan", "impl", "check", "review", "fix-up", "log", "spread", "both", "fix", "$END", "$SUSPEND", "$FAIL", "$START", "$error", "_", "nobody", "passed", "ok"}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		text := whole
		for range 1 + r.IntN(4) {
			lines := strings.SplitAfter(text, "\n")
			if i := r.IntN(len(lines)); r.IntN(3) == 0 {
				lines = slices.Delete(lines, i, i+1)
			} else {
				lines[i] = strings.Replace(lines[i], words[r.IntN(len(words))], words[r.IntN(len(words))], 1+r.IntN(2))
			}
			text = strings.Join(lines, "")
		}
		if _, err := parse(text); err != nil {
			requirePlaces(t, err)
		}
	}
}
