package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// ownKey implements [cliagent.Adapter.OwnKey]: with a model provider of the user's own, Codex needs no login,
// only the key that its settings name.
func ownKey(env func(string) string) (variable string, own bool) {
	home := cmp.Or(env("CODEX_HOME"), filepath.Join(cmp.Or(env("HOME"), env("USERPROFILE")), ".codex"))
	text, _ := os.ReadFile(filepath.Join(home, "config.toml")) // without settings there is no such provider
	return keyIn(string(text))
}

// keyIn reads the key of the chosen model provider in Codex's settings. It knows as much of TOML as
// people write there: tables, dotted names, and texts in one line.
func keyIn(text string) (variable string, own bool) {
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
	name := values["model_provider"]
	if profile := values["profile"]; profile != "" {
		name = cmp.Or(values["profiles."+profile+".model_provider"], name)
	}
	provider := "model_providers." + name + "."
	if name == "" || name == "openai" || values[provider+"requires_openai_auth"] == "true" {
		return "", false
	}
	return values[provider+"env_key"], true
}
