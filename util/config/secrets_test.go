package config

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	dotEnv := write(t, ".env", "AWS_SECRET_ACCESS_KEY=aws-0123456789\nDATABASE_URL=pg://me:hunter2-hunter2@db/x\nSTAGE=production\nODD=x9AbC1dE2fG3hI4j\nFROM=dot-env-key-1\n")
	file := write(t, "config.yaml", `
providers:
  a: { baseUrl: "https://me:url-password-1@x", apiKey: "literal key 1" }
  b: { baseUrl: http://x, apiKey: "${FROM}" }
  c: { baseUrl: http://x, apiKeyEnv: STRANGE }
agents:
  one: { command: c, env: { MY_TOKEN: "token-of-agent", MODE: readable-text, DB: "pg://x:hunter3-hunter3@db" } }
unknown: 1
`)
	got := filesAt(file, dotEnv).Secrets(process("GH_TOKEN=gh-0123456789", "STRANGE=key-by-name", "EDITOR=a-long-editor"))
	for _, want := range []string{
		"aws-0123456789", "hunter2-hunter2", "x9AbC1dE2fG3hI4j", "url-password-1", "literal key 1", "dot-env-key-1", "key-by-name",
		"token-of-agent", "hunter3-hunter3", "gh-0123456789",
	} {
		require.Contains(t, got, want)
	}
	require.False(t, slices.Contains(got, "production") || slices.Contains(got, "readable-text") || slices.Contains(got, "a-long-editor"))
	require.Equal(t, []string{"gh-0123456789"}, filesAt("none", "none").Secrets(process("GH_TOKEN=gh-0123456789")))
	require.Empty(t, filesAt(write(t, "config.yaml", "a: ["), write(t, ".env", "=")).Secrets(process()))
}
