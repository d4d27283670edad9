package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheKeyOfAModelProvider(t *testing.T) {
	t.Parallel()
	const provider = "[model_providers.mine]\nname = \"x\"\nbase_url = \"http://h/v1#a\" # not ours\nenv_key = \"MY_KEY\" # a comment\n"
	for _, c := range []struct {
		name, text, variable string
		own                  bool
	}{
		{"nothing", "", "", false},
		{"a model only", "model = \"gpt-5\"\n", "", false},
		{"a provider that is not chosen", provider, "", false},
		{"its key", "model_provider = \"mine\"\n" + provider, "MY_KEY", true},
		{"other ends of lines, and quotes", "model_provider='mine'\r\n[model_providers.\"mine\"]\r\n  env_key\t= 'MY_KEY'\r\n", "MY_KEY", true},
		{"dotted", "model_provider = \"mine\"\nmodel_providers.mine.env_key = \"MY_KEY\"\n", "MY_KEY", true},
		{"without a key", "model_provider = \"ollama\"\n", "", true},
		{"with Codex's own login", "model_provider = \"mine\"\n[model_providers.mine]\nrequires_openai_auth = true\n", "", false},
		{"the usual one", "model_provider = \"openai\"\n", "", false},
		{"in a comment", "# model_provider = \"mine\"\n" + provider, "", false},
		{"of another table", "[profiles.p]\nmodel_provider = \"mine\"\n" + provider, "", false},
		{"of the profile", "profile = \"p\"\n[profiles.p]\nmodel_provider = \"mine\"\n" + provider, "MY_KEY", true},
	} {
		variable, own := keyIn(c.text)
		require.Equal(t, c.own, own, c.name)
		require.Equal(t, c.variable, variable, c.name)
	}
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"CODEX_HOME": home}[name] }
	_, own := ownKey(env)
	require.False(t, own, "no settings")
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte("model_provider = \"mine\"\n"+provider), 0o600))
	variable, own := ownKey(env)
	require.True(t, own)
	require.Equal(t, "MY_KEY", variable)
}
