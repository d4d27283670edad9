//go:build agents

package agentstest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCodex(t *testing.T) { tellAll(t, codex()) }

func codex() program {
	return program{
		name: "codex", speak: responses,
		more:    []story{{"a fork goes on in a copy", fork}, {"a fork in a repository goes on in a copy", forkInRepository}, {"its own sandbox, and ours", ownSandbox}},
		npm:     npm{name: "@openai/codex", bin: "codex"},
		refusal: 429,
		hand:    []string{"exec", "--skip-git-repo-check", "hello"},
		environ: func(t *testing.T, url, bin, home string) map[string]string {
			config := fmt.Sprintf(`model = "gpt-5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`, url)
			require.NoError(t, os.Mkdir(filepath.Join(home, ".codex"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(config), 0o600))
			return map[string]string{"UWF_CODEX_BIN": bin, "HOME": home, "SCRIPTED_KEY": "a-dummy-key"}
		},
	}
}
