package config_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
)

// complete is a config with every key.
const complete = `{
  "providers": {"p": {"baseUrl": "https://example.org/v1", "apiKey": "${KEY}"}, "q": {"baseUrl": "http://localhost:1", "apiKeyEnv": "KEY"}},
  "models": {"m": {"provider": "p", "name": "n", "stream": false, "contextWindow": 1000, "price": {"input": 1, "output": 2.5, "cacheRead": 0.1, "cacheWrite": 0.2}, "idleTimeout": "30m", "cacheControl": "on"}},
  "agents": {"a": {"command": "uwf-mock", "args": ["x"], "timeout": "30m", "env": {"A": "b"}, "passEnv": ["GH_TOKEN"], "protocol": "named", "model": "m", "permission": "edits", "resume": true, "maxTurns": 90, "maxCostUsd": 1.5, "startTimeout": "1m", "idleTimeout": "10m", "retry": {"attempts": 5, "backoff": "1s", "on": ["rate-limit", "crash"]}, "onRateLimit": "fallback", "fallback": ["a"], "fallbackOn": ["rate-limit", "crash"], "account": "team", "maxRateLimitWait": "8h", "sandbox": {"mode": "auto", "allowRead": ["~/.ssh"], "allowWrite": ["/srv"], "sharedMemory": true, "network": "none", "nest": false}}},
  "defaultAgent": "a", "agentOverrides": {"w": {"r": "a"}},
  "defaultModel": "m", "modelOverrides": {"extract": "m", "w.r": "m"},
  "networkOverrides": {"w.r": ["api.example.com", "*.example.org:8080", "127.0.0.1:8080"], "w.s": "all"},
  "limits": {"maxSteps": 10, "maxVisitsPerRole": 3, "maxCostUsd": 2.5, "maxTokens": 100000, "maxTime": "2h", "perDay": {"costUsd": 5, "tokens": 1000000}}, "timeout": "1h30m", "concurrency": {"team": 3, "p": 2, "codex": 1}, "allowLocations": ["/srv/work", "~/work"],
  "workspace": {"default": "in-place", "perWorkflow": {"chat": "none"}, "maxFileMB": 50}, "artifacts": {"maxMB": 100},
  "notify": {"on": ["waiting", "error"], "command": ["notify-me", "--now"], "webhook": {"url": "https://example.org/hook", "secret": "${KEY}"}, "links": {"address": "https://uwf.example.org", "expiresIn": "12h"}},
  "sandbox": {"mode": "none", "denyRead": ["~/x"], "allowRead": ["~/.ssh/config"], "allowWrite": ["/tmp"], "sharedMemory": false, "caches": "user", "network": "all"}, "commands": {"sandbox": {"mode": "landlock", "network": ["a.example:*"], "nest": true}},
  "builtin": {"allowCommands": ["go"], "passEnv": ["GH_TOKEN"], "capabilities": ["chown"], "noUnixSockets": true, "allowFetch": true, "allowPrivate": false, "maxTurns": 30, "maxContinueTurns": 5, "maxTokens": 5, "maxCostUsd": 0.5, "maxTime": "20m", "instructions": "off"}
}`

// uwf rejects everything that the editors' schema rejects, and both accept valid configs.
func TestEditorSchema(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.CompileString("config.json", string(protocol.EditorSchema(protocol.EditConfig)))
	require.NoError(t, err)
	e := env.Env{Environ: []string{"KEY=k"}}
	parse := func(v any) error {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		_, err = config.Parse(b, "config.yaml", e)
		return err
	}
	fresh := func() (v any) {
		require.NoError(t, json.Unmarshal([]byte(complete), &v))
		return v
	}
	require.NoError(t, schema.Validate(fresh()))
	require.NoError(t, parse(fresh()))
	random := rand.New(rand.NewPCG(1, 200))
	refused := 0
	for range 2000 {
		v := fresh()
		what := breakOne(random, v.(map[string]any))
		if schemaErr := schema.Validate(v); schemaErr != nil {
			refused++
			require.Error(t, parse(v), "%s\nthe schema says: %#v", what, schemaErr)
		}
	}
	require.Greater(t, refused, 200)
}

// breakOne changes a random entry in a config and describes the change.
func breakOne(random *rand.Rand, m map[string]any) string {
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) == 0 {
		return "nothing"
	}
	key := keys[random.IntN(len(keys))]
	if inner, ok := m[key].(map[string]any); ok && random.IntN(4) > 0 {
		return key + "/" + breakOne(random, inner)
	}
	switch random.IntN(3) {
	case 0:
		delete(m, key)
	case 1:
		m[key+"x"] = m[key]
		delete(m, key)
	default:
		wrong := []any{true, 7, -1, 2.5, "text", []any{}, []any{map[string]any{}}, map[string]any{"a": []any{}}}
		m[key] = wrong[random.IntN(len(wrong))]
	}
	return key
}
