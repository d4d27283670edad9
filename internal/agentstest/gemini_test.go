//go:build agents

package agentstest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGemini(t *testing.T) { tellAll(t, gemini()) }

func gemini() program {
	return program{
		name: "gemini", speak: google,
		npm: npm{name: "@google/gemini-cli", bin: "gemini"},
		// Without a model its router asks one, with a minute of retries.
		args: []string{"-m", "gemini-2.5-pro"},
		hand: []string{"--skip-trust", "-m", "gemini-2.5-pro", "-p", "hello"},
		environ: func(t *testing.T, url, bin, home string) map[string]string {
			require.NoError(t, os.Mkdir(filepath.Join(home, ".gemini"), 0o700))
			settings := `{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false}}`
			require.NoError(t, os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte(settings), 0o600))
			return map[string]string{"UWF_GEMINI_BIN": bin, "HOME": home, "GEMINI_API_KEY": "a-dummy-key", "GOOGLE_GEMINI_BASE_URL": url}
		},
	}
}
