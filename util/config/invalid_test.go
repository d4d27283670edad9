package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/fuzzing"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestInvalid(t *testing.T) {
	t.Parallel()
	const p = "providers: { x: { baseUrl: https://x.example/v1 } }\n"
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":        {"defaultAgnt: x", `1:1: unknown key "defaultAgnt"; did you mean "defaultAgent"?` + "\n    defaultAgnt: …"},
		"unknown nested key": {p + "models:\n  a:\n    providr: x\n    name: n\n    provider: x", `4:5: unknown key "providr" in models.a; did you mean "provider"?` + "\n    providr: …"},
		"wrong type":         {"timeout: [1]", "1:10: timeout must be a text\n    timeout: …"},
		"wrong kind":         {"agents: hermes", "1:9: agents must be a mapping\n    agents: …"},
		"not a mapping":      {"- a", "1:1: the config must be a mapping"},
		"args are no list":   {"agents:\n  a: { command: c, args: --x }", "2:26: agents.a.args must be a list\n    a: …"},
		"negative":           {"limits: { maxSteps: -1 }", "1:21: limits.maxSteps must be a whole number, at least 0\n    limits: …"},
		"not a boolean":      {"agents: { a: { command: c, resume: yes } }", "1:36: agents.a.resume must be true or false\n    agents: …"},
		"no base URL":        {"providers:\n  x: {}", "2:6: providers.x.baseUrl is missing; such as https://api.openai.com/v1\n    x: …"},
		"no URL":             {"providers: { x: { baseUrl: x.example } }", "1:28: providers.x.baseUrl must begin with https:// or http:// and a host; such as https://api.openai.com/v1\n    providers: …"},
		"model without name": {p + "models: { a: { provider: x } }", "2:14: models.a.name is missing; it is what the provider calls the model\n    models: …"},
		"no command":         {"agents: { a: {} }", "1:14: agents.a.command is missing\n    agents: …"},
		"default agent":      {"defaultAgent: a", `1:15: defaultAgent names agent "a", which is not in agents` + "\n    defaultAgent: …"},
		"override":           {"agents: { abc: { command: c } }\nagentOverrides:\n  w: { r: abd }", `3:11: agentOverrides.w.r names agent "abd", which is not in agents; did you mean "abc"?` + "\n    w: …"},
		"default model":      {"defaultModel: m", `1:15: defaultModel names model "m", which is not in models` + "\n    defaultModel: …"},
		"role of ours":       {p + "models: { m: { provider: x, name: n } }\nagents: { a: { command: uwf-builtin } }\ndefaultAgent: a\nmodelOverrides: { w.r: haiku }", `5:24: modelOverrides.w.r names model "haiku", which is not in models; known are "m"` + "\n    modelOverrides: …"},
		"model override":     {p + "models: { m: { provider: x, name: n } }\nmodelOverrides: { extrct: m }", `3:27: modelOverrides has the unknown key "extrct"; it must be extract, agent or <workflow>.<role>` + "\n    modelOverrides: …"},
		"duration":           {"timeout: 30", "1:10: timeout must be a length of time with a unit; such as 90s, 30m or 2h\n    timeout: …"},
		"a model's silence":  {p + "models: { m: { provider: x, name: n, idleTimeout: 30 } }", "2:51: models.m.idleTimeout must be a length of time with a unit; such as 90s, 30m or 2h\n    models: …"},
		"a budget's time":    {"builtin: { maxTime: 20 }", "1:21: builtin.maxTime must be a length of time with a unit; such as 90s, 30m or 2h\n    builtin: …"},
		"a budget's cost":    {"builtin: { maxCostUsd: -0.5 }", "1:24: builtin.maxCostUsd must be a number, at least 0\n    builtin: …"},
		"protocol":           {"agents: { a: { command: c, protocol: nmed } }", `1:38: agents.a.protocol must be "positional" or "named"; did you mean "named"?` + "\n    agents: …"},
		"permission":         {"agents: { a: { command: c, permission: root } }", `1:40: agents.a.permission must be "full" or "edits" or "read-only"` + "\n    agents: …"},
		"environment name":   {"agents: { a: { command: c, env: { 'A B': x } } }", `1:42: agents.a.env has a key that cannot be the name of an environment variable` + "\n    agents: …"},
		"two keys":           {"providers: { x: { baseUrl: http://x, apiKey: a, apiKeyEnv: B } }", "1:60: providers.x has both apiKey and apiKeyEnv; remove one of them\n    providers: …"},
		"a notice":           {"notify: { on: [wating] }", `1:15: notify.on must be "waiting" or "error" or "completed" or "limit"; did you mean "waiting"?` + "\n    notify: …"},
		"a hook in clear":    {"notify: { webhook: { url: http://example.org } }", "1:27: notify.webhook.url must begin with https:// and a host; http:// is for this machine only\n    notify: …"},
		"a link's place":     {"notify: { links: { address: 'https://example.org/x' } }", "1:29: notify.links.address must be https:// and a host, without a path; http:// is for this machine only; such as https://uwf.example.org\n    notify: …"},
		"a link for ever":    {"notify: { links: { address: 'https://example.org', expiresIn: 800h } }", "1:63: notify.links.expiresIn is too long; at most 720h\n    notify: …"},
		"caches":             {"sandbox: { caches: mine }", `1:20: sandbox.caches must be "own" or "user"` + "\n    sandbox: …"},
		"an old key":         {"agents: { a: { command: c, onLimit: wait } }", `1:28: unknown key "onLimit" in agents.a; it is onRateLimit now` + "\n    agents: …"},
		"an old block":       {"builtin: { confine: auto }", `1:12: unknown key "confine" in builtin; it is sandbox.mode, at the top level, now` + "\n    builtin: …"},
		"an old word":        {"notify: { on: [ended] }", `1:15: notify.on must be "waiting" or "error" or "completed" or "limit"; it is completed now` + "\n    notify: …"},
		"a tag":              {"timeout: !include x", "1:19: timeout must not have a tag\n    timeout: …"},
		"a broken variable":  {"timeout: ${A", "1:10: timeout has a ${ that is not the beginning of ${NAME}; write $$ for a dollar sign\n    timeout: …"},
		"a needed variable":  {"defaultAgent: ${UWF_NONE}", "1:15: defaultAgent asks for the environment variable UWF_NONE, which is not set\n    defaultAgent: …"},
		"a place":            {"allowLocations: [/srv, work]", "1:17: allowLocations[1] must be an absolute directory; write the whole path, or ~/…\n    allowLocations: …"},
		"key twice":          {"timeout: 1s\ntimeout: 2s", "2:1: this key is already in line 1\n    timeout: …"},
		"a key in its name":  {"providers: { x: { baseUrl: http://x, apiKeyEnv: sk-live-1 } }", "1:49: providers.x.apiKeyEnv must be the name of an environment variable; a key itself belongs into apiKey\n    providers: …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.text), "config.yaml", process())
			require.EqualError(t, err, "config.yaml:"+c.want)
			var e *protocol.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, protocol.CodeInvalid, e.Code)
		})
	}
}

// The seeds' own example names a provider that it does not have, for a model that
// only some use.
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

// Whatever is wrong with a file, and wherever the secret stands in it, the
// error does not show it.
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
		defer fuzzing.Bounded(t)()
		if _, err := Parse([]byte(text), "c", process("A=1")); err != nil {
			var e *InvalidError
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Problems)
		}
	})
}

// A program of others has models of its own, for single roles, too.
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
