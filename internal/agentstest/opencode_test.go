//go:build agents

package agentstest

import (
	"fmt"
	"testing"
)

func TestOpencode(t *testing.T) { tellAll(t, opencode()) }

func opencode() program {
	return program{
		name: "opencode", speak: chat,
		more: []story{{"a fork goes on in a copy", fork}},
		npm:  npm{name: "opencode-ai", bin: "opencode"},
		// Without our adapter it asks before it runs a command.
		hand: []string{"run", "hello"},
		environ: func(_ *testing.T, url, bin, home string) map[string]string {
			return map[string]string{
				"UWF_OPENCODE_BIN": bin, "HOME": home, "OPENCODE_DISABLE_MODELS_FETCH": "1",
				"OPENCODE_CONFIG_CONTENT": fmt.Sprintf(`{"model":"scripted/it","small_model":"scripted/it","permission":{"bash":"ask"},"provider":{"scripted":{
					"npm":"@ai-sdk/openai-compatible","name":"scripted","options":{"baseURL":"%s/v1","apiKey":"a-dummy-key"},
					"models":{"it":{"name":"it","limit":{"context":100000,"output":4000}}}}}}`, url),
			}
		},
	}
}
