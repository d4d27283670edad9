package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/fuzztest"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestInvalid(t *testing.T) {
	t.Parallel()
	const p = "providers: { x: { baseUrl: https://x.example/v1 } }\n"
	for name, text := range map[string]string{
		"unknown key":        "defaultAgnt: x",
		"unknown nested key": p + "models:\n  a:\n    providr: x\n    name: n\n    provider: x",
		"wrong type":         "timeout: [1]",
		"wrong kind":         "agents: hermes",
		"not a mapping":      "- a",
		"args are no list":   "agents:\n  a: { command: c, args: --x }",
		"negative":           "limits: { maxSteps: -1 }",
		"negative artifacts": "artifacts: { maxMB: -1 }",
		"not a boolean":      "agents: { a: { command: c, resume: yes } }",
		"no base URL":        "providers:\n  x: {}",
		"no URL":             "providers: { x: { baseUrl: x.example } }",
		"model without name": p + "models: { a: { provider: x } }",
		"no command":         "agents: { a: {} }",
		"default agent":      "defaultAgent: a",
		"override":           "agents: { abc: { command: c } }\nagentOverrides:\n  w: { r: abd }",
		"default model":      "defaultModel: m",
		"role of ours":       p + "models: { m: { provider: x, name: n } }\nagents: { a: { command: uwf-builtin } }\ndefaultAgent: a\nmodelOverrides: { w.r: haiku }",
		"model override":     p + "models: { m: { provider: x, name: n } }\nmodelOverrides: { extrct: m }",
		"duration":           "timeout: 30",
		"a model's silence":  p + "models: { m: { provider: x, name: n, idleTimeout: 30 } }",
		"a budget's time":    "builtin: { maxTime: 20 }",
		"a budget's cost":    "builtin: { maxCostUsd: -0.5 }",
		"a day's cost":       "limits: { perDay: { costUsd: -1 } }",
		"a day's steps":      "limits: { perDay: { steps: 3 } }",
		"protocol":           "agents: { a: { command: c, protocol: nmed } }",
		"permission":         "agents: { a: { command: c, permission: root } }",
		"environment name":   "agents: { a: { command: c, env: { 'A B': x } } }",
		"two keys":           "providers: { x: { baseUrl: http://x, apiKey: a, apiKeyEnv: B } }",
		"a notice":           "notify: { on: [wating] }",
		"a hook in clear":    "notify: { webhook: { url: http://example.org } }",
		"a link's place":     "notify: { links: { address: 'https://example.org/x' } }",
		"a link for ever":    "notify: { links: { address: 'https://example.org', expiresIn: 800h } }",
		"caches":             "sandbox: { caches: mine }",
		"network word":       "sandbox: { network: non }",
		"network host":       "sandbox: { network: api.example.com }",
		"network number":     "sandbox: { network: 5x }",
		"network empty":      "agents: { a: { command: c, sandbox: { network: [] } } }",
		"network mapping":    "commands: { sandbox: { network: { a: b } } }",
		"network URL":        "sandbox: { network: ['https://api.example.com/v1'] }",
		"network star":       "sandbox: { network: [a.example, '*'] }",
		"network half star":  "sandbox: { network: ['*example.com'] }",
		"network listed":     "sandbox: { network: [none] }",
		"network port":       "sandbox: { network: ['a.example:99999'] }",
		"network nested":     "sandbox: { network: [[a.example]] }",
		"network blank":      "sandbox: { network: [''] }",
		"network unheld":     "sandbox: { mode: none, network: none }",
		"network unheld too": "sandbox: { network: [a.example] }\nagents: { a: { command: c, sandbox: { mode: none } } }",
		"network role":       "networkOverrides: { dev: none }",
		"network role word":  "networkOverrides: { w.dev: al }",
		"a tag":              "timeout: !include x",
		"a broken variable":  "timeout: ${A",
		"a needed variable":  "defaultAgent: ${UWF_NONE}",
		"a place":            "allowLocations: [/srv, work]",
		"key twice":          "timeout: 1s\ntimeout: 2s",
		"a key in its name":  "providers: { x: { baseUrl: http://x, apiKeyEnv: sk-live-1 } }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(text), "config.yaml", process())
			prosetest.Error(t, err, protocol.CodeInvalid)
		})
	}
}

// The example in the seeds has a missing provider for a model that not everyone uses.
func TestModelWithoutProvider(t *testing.T) {
	t.Parallel()
	src := []byte("providers: { x: { baseUrl: https://x.example/v1 } }\nmodels: { a: { provider: xx, name: n }, b: { provider: x, name: n } }\ndefaultModel: b\nmodelOverrides: { extract: a }\n")
	c, err := Parse(src, "config.yaml", process())
	require.NoError(t, err)
	warnings := Warnings(src, "config.yaml", process())
	require.Len(t, warnings, 1)
	prosetest.Text(t, warnings[0].Message)
	prosetest.Text(t, warnings[0].Remedy)
	require.Equal(t, 2, warnings[0].Line)
	_, err = ResolveModel(c, "b", process())
	require.NoError(t, err)
	_, err = ResolveModel(c, ExtractModel(c), process())
	prosetest.Error(t, err, protocol.CodeInvalid)
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("defaultAgent: a\nx: 1\ntimeout: soon\n"), "c", process())
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 3)
	for i, p := range invalid.Problems {
		require.Equal(t, i+1, p.Line)
	}
}

// Errors never show a secret, wherever it is in an invalid file.
func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	for _, around := range []string{
		"apiKey: %", "apiKey: *%", "apiKey: &% x", "apiKey: !% x", "apiKey: !!% x", "apiKey: \"%", "apiKey: '%' x", "apiKey: @%", "apiKey: `%", "apiKey: |%",
		"apiKey: {%}", "apiKey: [%", "apiKey: %: x", "apiKey: x\n      %", "apiKey:\n  %", "apiKey\n%", "\t%", "apiKey: ${%", "apiKey: ${%}", "apiKey: \"\\q%\"", "apiKey: %\x01",
		"apiKey: - %", "apiKeyEnv: %", "apiKey: <<%", "apiKey: a\n    apiKey: %", "apiKey: %\xff", "{%: %", "- %", "apiKey: x # %", "apiKey: ? %", "apiKey: {a: *%}",
		"baseUrl: https://u:%@x:y", "baseUrl: %",
	} {
		const secret = "sk-live/4f$kq9Zx"
		text := "providers:\n  x:\n    " + strings.ReplaceAll(around, "%", secret) + "\nunknownKey: 1\n"
		_, err := Parse([]byte(text), "config.yaml", process())
		require.Error(t, err, text)
		for _, piece := range []string{"sk-live", "4f$kq", "kq9Zx"} {
			require.NotContains(t, err.Error(), piece, text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add("providers: {x: {apiKey: ${A}}}\nagents: [")
	f.Add("modelOverrides: {a.b: c}\nlimits: {maxSteps: 1e3}")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzztest.Bounded(t)()
		if _, err := Parse([]byte(text), "c", process("A=1")); err != nil {
			var e *InvalidError
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Problems)
		}
	})
}

// An external program has its own model names, also in role overrides.
func TestPlainNamesOfModels(t *testing.T) {
	t.Parallel()
	const text = "agents: { own: { command: uwf-builtin }, claude: { command: /opt/uwf-claude-code } }\ndefaultAgent: own\n" +
		"agentOverrides: { w: { r: claude } }\nmodelOverrides: { w.r: haiku }\n"
	c, err := Parse([]byte(text), "config.yaml", env.Env{})
	require.NoError(t, err)
	model, price, err := ExternalModel(c, "/opt/uwf-claude-code", "claude", "w", "r", env.Env{})
	require.NoError(t, err)
	require.Equal(t, "haiku", model)
	require.Nil(t, price)
	model, _, err = ExternalModel(c, "uwf-exec", "claude", "w", "r", env.Env{})
	require.NoError(t, err)
	require.Empty(t, model, "its command is told of no model")

	_, err = Parse([]byte("modelOverrides: { w.r: haiku }\n"), "config.yaml", env.Env{})
	require.NoError(t, err, "who plays the role may be said on the command line")
}
