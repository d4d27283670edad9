package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

const commented = `# My config.
providers:
  openai: # the real one
    baseUrl: https://api.openai.com/v1   # with /v1
    apiKey: "sk-0123456789012345678901234567890"

  local: { baseUrl: "http://127.0.0.1:11434/v1" }

# Models.
models:
  default:
    provider: openai
    name: gpt-5
agents:
  builtin:
    command: uwf-builtin
    args: [--model, default] # the model
defaultAgent: builtin # who else
`

func set(t *testing.T, src, key, value string) (string, []protocol.Problem, error) {
	t.Helper()
	k, err := config.ParseKey(key)
	require.NoError(t, err)
	v, err := k.Value(value)
	if err != nil {
		return "", nil, err
	}
	text, missing, err := config.Set([]byte(src), "config.yaml", k, v, env.Env{})
	return string(text), missing, err
}

// changes returns the lines that only one of two texts contains.
func changes(before, after string) (gone, come []string) {
	lines := map[string]int{}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for l := range strings.SplitSeq(before, "\n") {
		lines[squeeze(l)]++
	}
	for l := range strings.SplitSeq(after, "\n") {
		if lines[squeeze(l)] > 0 {
			lines[squeeze(l)]--
		} else {
			come = append(come, squeeze(l))
		}
	}
	for l, n := range lines {
		for range n {
			gone = append(gone, l)
		}
	}
	return gone, come
}

func TestSetKeepsAllElse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key, value string
		gone, come []string
	}{
		"a scalar":           {"models.default.name", "gpt-6", []string{"name: gpt-5"}, []string{"name: gpt-6"}},
		"with its comment":   {"providers.openai.baseUrl", "https://example.org/v1", []string{"baseUrl: https://api.openai.com/v1 # with /v1"}, []string{`baseUrl: "https://example.org/v1" # with /v1`}},
		"a new field":        {"models.default.contextWindow", "128000", nil, []string{"contextWindow: 128000"}},
		"a new section":      {"timeout", "30m", nil, []string{`timeout: "30m"`}},
		"a nested section":   {"limits.maxSteps", "20", nil, []string{"limits: {maxSteps: 20}"}},
		"a list":             {"agents.builtin.args", `["--model","default","-v"]`, []string{"args: [--model, default] # the model"}, nil},
		"a new agent":        {"agents.two.command", "uwf-llm", nil, []string{"two: {command: uwf-llm}"}},
		"a text like a bool": {"models.default.name", "true", []string{"name: gpt-5"}, []string{`name: "true"`}},
		"in a flow mapping":  {"providers.local.apiKeyEnv", "LOCAL_KEY", []string{`local: { baseUrl: "http://127.0.0.1:11434/v1" }`}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, missing, err := set(t, commented, test.key, test.value)
			require.NoError(t, err)
			require.Empty(t, missing)
			gone, come := changes(commented, after)
			require.ElementsMatch(t, test.gone, gone, "%s", after)
			if test.come != nil {
				require.ElementsMatch(t, test.come, come, "%s", after)
			}
			for _, comment := range []string{"# My config.", "# the real one", "# with /v1", "# Models.", "# the model", "# who else"} {
				require.Contains(t, after, comment)
			}
		})
	}
}

func TestSetBeginsAFile(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "# only a comment\n", "{}\n"} {
		after, _, err := set(t, src, "limits.maxSteps", "7")
		require.NoError(t, err)
		require.Contains(t, after, "maxSteps: 7")
	}
	after, _, err := set(t, "agents:\ntimeout: 5m\n", "agents.x.command", "y")
	require.NoError(t, err)
	require.Contains(t, after, `command: "y"`)
}

// A config that is written field by field can be incomplete, but not invalid.
func TestSetValidates(t *testing.T) {
	t.Parallel()
	after, missing, err := set(t, commented, "models.fast.name", "gpt-5-mini")
	require.NoError(t, err)
	require.Len(t, missing, 1)
	require.Equal(t, "models.fast.provider is missing", missing[0].Message)
	after, missing, err = set(t, after, "models.fast.provider", "openai")
	require.NoError(t, err)
	require.Empty(t, missing)
	_, _, err = set(t, after, "modelOverrides.solve-issue.planner", "fast")
	require.NoError(t, err)

	for key, value := range map[string]string{
		"defaultAgent": "biultin", "timeout": "soon", "limits.maxSteps": "-3", "agents.builtin.protocol": "loud",
		"providers.openai.baseUrl": "api.openai.com", "limits": "7", "agents.builtin.args": "-v", "models.default.stream": "maybe",
		"models.default.contextWindow": "1e3.5", "builtin.allowFetch": "1",
	} {
		_, _, err := set(t, commented, key, value)
		var coded *protocol.Error
		require.ErrorAs(t, err, &coded, "%s = %s", key, value)
		require.Equal(t, protocol.CodeInvalid, coded.Code)
	}
	_, _, err = set(t, commented, "defaultAgent", "biultin")
	prosetest.Error(t, err, protocol.CodeInvalid)
}

func TestKeysThatDoNotExist(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"provders", "", "models.default.nam",
		"defaultAgent.x", "agents..command", `agents."x`, `agents."x"y`,
	} {
		_, err := config.ParseKey(key)
		var coded *protocol.Error
		require.ErrorAs(t, err, &coded, key)
		require.Equal(t, protocol.CodeUsage, coded.Code)
		prosetest.Text(t, coded.Message, key)
	}
	k, err := config.ParseKey(`agents."a.b".env.X`)
	require.NoError(t, err)
	require.Equal(t, []string{"agents", "a.b", "env", "X"}, k.Path)
	require.Equal(t, `agents."a.b".env.X`, k.String())
	k, err = config.ParseKey("modelOverrides.solve.planner")
	require.NoError(t, err)
	require.Equal(t, []string{"modelOverrides", "solve.planner"}, k.Path)
	require.Equal(t, "modelOverrides.solve.planner", k.String())
}

func TestRawMasksSecrets(t *testing.T) {
	t.Parallel()
	raw, err := config.Raw([]byte(commented+"unknown: 1\n"), "config.yaml")
	require.NoError(t, err, "what is wrong beyond its form is shown as it is")
	k, err := config.ParseKey("providers.openai.apiKey")
	require.NoError(t, err)
	require.True(t, k.Secret())
	v, ok := k.Lookup(raw)
	require.True(t, ok)
	require.Equal(t, "***7890", v)
	raw, err = config.Raw([]byte("providers: {p: {apiKey: '${KEY}'}}\nagents: {a: {env: {API_TOKEN: 123456, PLAIN: x, DB: 'pg://me:hunter2@db/x'}}}\n"), "config.yaml")
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"providers": map[string]any{"p": map[string]any{"apiKey": "${KEY}"}},
		"agents":    map[string]any{"a": map[string]any{"env": map[string]any{"API_TOKEN": "***", "PLAIN": "x", "DB": "pg[hidden key]db/x"}}},
	}, raw)
	raw, err = config.Raw([]byte("providers: {p: {apiKey: '${A}-secret-${B}'}}\nagents: {a: {args: ['pg://me:hunter2@db/x']}}\n"), "config.yaml")
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"providers": map[string]any{"p": map[string]any{"apiKey": "***"}},
		"agents":    map[string]any{"a": map[string]any{"args": []any{"pg[hidden key]db/x"}}},
	}, raw)
	raw, err = config.Raw(nil, "config.yaml")
	require.NoError(t, err)
	require.Equal(t, map[string]any{}, raw)
	_, err = config.Raw([]byte("a: [\n"), "config.yaml")
	require.ErrorContains(t, err, "config.yaml:")
}

func FuzzSet(f *testing.F) {
	for _, src := range []string{commented, "", "a: b\n", "models:\n  m: {name: x}\n", "models: {m: &a {name: x}, n: *a}\n", "- x\n", "timeout: |\n  5m\n"} {
		f.Add(src, "models.m.name", "v: 1")
		f.Add(src, "timeout", "5m")
	}
	f.Fuzz(func(t *testing.T, src, key, value string) {
		k, err := config.ParseKey(key)
		if err != nil {
			return
		}
		v, err := k.Value(value)
		if err != nil {
			return
		}
		text, _, err := config.Set([]byte(src), "config.yaml", k, v, env.Env{})
		if err != nil {
			return
		}
		// Reading again returns the value that was set, unless it is masked.
		raw, err := config.Raw(text, "config.yaml")
		require.NoError(t, err)
		got, ok := k.Lookup(raw)
		require.True(t, ok)
		if !k.Secret() && k.Path[0] != "providers" && k.Path[0] != "agents" {
			require.Equal(t, v, got)
		}
	})
}
