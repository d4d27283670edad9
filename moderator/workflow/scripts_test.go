package workflow_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

const scripted = `name: base
description: d
inputs: { tag: string }
roles:
  plan: { prompt: Plan., answer: { why: string } }
  publish: { run: 'gh release create "$TAG" --notes {{.Names}}', shell: bash, env: { TAG: "{{$inputs.tag}}", N: 5, WHY: "{{why}}" } }
graph: { $START: plan, plan: publish, publish: { passed: $END, failed: $END } }
`

// A script is literal; answers reach it only as variables.
func TestScripts(t *testing.T) {
	t.Parallel()
	def, err := parse(scripted)
	require.NoError(t, err)
	require.Empty(t, def.Notices)
	r := def.Roles["publish"]
	require.Equal(t, []string{"bash", "-eo", "pipefail", "-c", `gh release create "$TAG" --notes {{.Names}}`}, r.Command())
	require.Equal(t, map[string]string{"TAG": "{{$inputs.tag}}", "N": "5", "WHY": "{{why}}"}, r.Env)
	require.Equal(t, protocol.PlayedByCommand, r.Player())
	require.Equal(t, protocol.Language3, def.Language)
	require.NoError(t, editorSchema(t).Validate(value(t, scripted)))
	for shell, words := range map[string][]string{
		"sh": {"sh", "-e", "-c"}, "python3": {"python3", "-c"}, "node": {"node", "-e"}, "bun": {"bun", "-e"}, "[perl, -e]": {"perl", "-e"},
	} {
		text := replaceOnce(scripted, "shell: bash", "shell: "+shell)
		def, err := parse(text)
		require.NoError(t, err, shell)
		argv := def.Roles["publish"].Command()
		require.Equal(t, words, argv[:len(argv)-1])
		require.NoError(t, editorSchema(t).Validate(value(t, text)), shell)
	}
	def, err = parse(replaceOnce(scripted, "run: 'gh release create \"$TAG\" --notes {{.Names}}', shell: bash", "run: [gh, \"{{why}}\"]"))
	require.NoError(t, err, "env stands beside words, too")
	require.Equal(t, protocol.Language3, def.Language)
}

func TestProblemsOfScripts(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string][2]string{
		"a variable of the answer":   {"{{.Names}}", "{{why}} {{ why }} {{nothing}}"},
		"an input":                   {"{{.Names}}", "{{{$inputs.tag}}}"},
		"the task":                   {"{{.Names}}", "{{$prompt}}"},
		"an earlier answer":          {"{{.Names}}", "{{$steps.plan.why}}"},
		"a blank script":             {`'gh release create "$TAG" --notes {{.Names}}'`, "' '"},
		"a long script":              {"{{.Names}}", strings.Repeat("x", 200<<10)},
		"an unknown shell":           {"shell: bash", "shell: fish"},
		"a shell without words":      {"shell: bash", "shell: []"},
		"a variable of uwf":          {"WHY:", "uwf_thread:"},
		"a name with a =":            {"WHY:", `"A=B":`},
		"a name with a control":      {"WHY:", `"A\a":`},
		"a name with a NUL":          {"WHY:", `"A\0":`},
		"a value with a NUL":         {"N: 5", `N: "a\0b"`},
		"a value that is a list":     {"N: 5", "N: [5]"},
		"env that is a list":         {`{ TAG: "{{$inputs.tag}}", N: 5, WHY: "{{why}}" }`, "[TAG]"},
		"a variable that is not":     {"WHY: \"{{why}}\"", "WHY: \"{{wy}}\""},
		"a role that never was":      {"WHY: \"{{why}}\"", "WHY: \"{{$steps.publish.output}}\""},
		"a word that is no variable": {"run: 'gh release create \"$TAG\" --notes {{.Names}}', shell: bash", "run: [docker, \"{{.Names}}\"]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(replaceOnce(scripted, edit[0], edit[1]))
			prosetest.Text(t, problemLines(t, err))
		})
	}
}

// A default that doesn't match its schema causes a notice.
func TestADefaultThatDoesNotFitIsNoted(t *testing.T) {
	t.Parallel()
	for fallback, noted := range map[string]bool{"2": false, "two": true} {
		def, err := parse(replaceOnce(scripted, "answer: { why: string }", "schema: { type: object, required: [why], properties: { why: { type: string }, n: { type: integer, default: "+fallback+" } } }"))
		require.NoError(t, err)
		require.Equal(t, noted, len(def.Notices) == 1, "%s", def.Notices)
	}
}

// Template-like text in an included script, and a variable that affects programs and is set by an answer,
// cause notices.
func TestNotesOfScripts(t *testing.T) {
	t.Parallel()
	for name, noted := range map[string]bool{"PATH": true, "LD_PRELOAD": true, "GIT_SSH_COMMAND": true, "NODE_OPTIONS": true, "PATHS": false} {
		def, err := parse(replaceOnce(scripted, "WHY:", name+":"))
		require.NoError(t, err)
		require.Equal(t, noted, len(def.Notices) == 1, "%s: %s", name, def.Notices)
		def, err = parse(replaceOnce(scripted, "TAG:", name+":"))
		require.NoError(t, err)
		require.Empty(t, def.Notices, "an input is a person's")
	}
	dir, err := os.OpenRoot(project(t, map[string]string{"publish.sh": "echo {{why}} {{.Names}}\n"}))
	require.NoError(t, err)
	defer dir.Close()
	for name, run := range map[string]string{"a script": "!include publish.sh", "a word": "[sh, -c, !include publish.sh, x]"} {
		text := strings.Replace(scripted, `'gh release create "$TAG" --notes {{.Names}}', shell: bash`, run, 1)
		def, err := workflow.Parse(workflow.Source{File: "base.yaml", Data: []byte(text), Dir: dir})
		if name == "a word" {
			prosetest.Text(t, problemLines(t, err), name)
			continue
		}
		require.NoError(t, err)
		prosetest.Text(t, strings.Join(def.Notices, "\n"), name)
		require.Equal(t, "echo {{why}} {{.Names}}\n", def.Roles["publish"].Script)
	}
}
