package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// ownKey implements [cliagent.Adapter.OwnKey]: with a model provider of the user's own, Codex needs no login,
// only the key that its settings name.
func ownKey(env func(string) string) (variable string, own bool) { return keyIn(settings(env)) }

// repeats implements [cliagent.Adapter.Repeats].
func repeats(c cliagent.Call) int {
	const usual = 4
	_, provider := providerIn(settings(c.Env))
	if n, err := strconv.Atoi(provider["request_max_retries"]); err == nil {
		return n
	}
	return usual
}

func settings(env func(string) string) string {
	home := cmp.Or(env("CODEX_HOME"), filepath.Join(cmp.Or(env("HOME"), env("USERPROFILE")), ".codex"))
	text, _ := os.ReadFile(filepath.Join(home, "config.toml")) // without settings there is no such provider
	return string(text)
}

func keyIn(text string) (variable string, own bool) {
	name, provider := providerIn(text)
	if name == "" || name == "openai" || provider["requires_openai_auth"] == "true" {
		return "", false
	}
	return provider["env_key"], true
}

// providerIn reads the chosen model provider in Codex's settings. It knows as much of TOML as
// people write there: tables, dotted names, and texts in one line.
func providerIn(text string) (name string, provider map[string]string) {
	table, values := "", map[string]string{}
	plain := strings.NewReplacer(`"`, "", "'", "", " ", "", "\t", "")
	for line := range strings.Lines(text) {
		name, value, isValue := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case strings.HasPrefix(name, "["):
			head, _, _ := strings.Cut(name, "#")
			table = strings.Trim(plain.Replace(head), "[]") + "."
		case isValue && !strings.HasPrefix(name, "#"):
			value, _, _ = strings.Cut(value, "#")
			values[table+plain.Replace(name)] = strings.TrimSpace(plain.Replace(value))
		}
	}
	name = values["model_provider"]
	if profile := values["profile"]; profile != "" {
		name = cmp.Or(values["profiles."+profile+".model_provider"], name)
	}
	provider = map[string]string{}
	for key, value := range values {
		if key, is := strings.CutPrefix(key, "model_providers."+name+"."); is {
			provider[key] = value
		}
	}
	return name, provider
}
