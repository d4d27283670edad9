//go:build agents

package agentstest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownSandbox: codex's sandbox holds by itself. Within ours it cannot be made: no command
// runs, and a person is told.
func ownSandbox(t *testing.T, b *bench) {
	if runtime.GOOS != "linux" {
		return
	}
	shell(t, b.home, "mkdir -p .ssh && echo the-ke''y > .ssh/id && mkdir -p .codex && echo '{}' > .codex/auth.json")
	for _, c := range []struct {
		permission, mode, told string
		writes                 bool
	}{
		{"edits", "none", "ran-it", true}, {"read-only", "none", "ran-it", false},
		{"edits", "required", "", false}, {"read-only", "required", "", false},
	} {
		b.configure(map[string]any{"sandbox": map[string]any{"mode": c.mode}, "permission": c.permission})
		b.thread = b.begun()
		name := c.permission + "-" + c.mode
		b.model.play(reply{text: "I try.", run: "printf ran-%s it; cat " + b.home + "/.ssh/id || printf no-%s key; cat " + b.home + "/.codex/auth.json " + b.dir + "/home/config.yaml || printf no-%s config; test -r " + b.dir + "/home/cas/format.json && printf st''ore; echo x > " + name}, reply{text: answer("fog")})
		_, said, err := b.step()
		require.NoError(t, err, said)
		asked := b.model.asked()
		if c.told != "" {
			require.Contains(t, asked[1], c.told)
			require.NotContains(t, said, "warning")
			for _, seen := range []string{"no-key", "no-config", "store"} {
				require.Contains(t, asked[1], seen)
			}
			require.NotContains(t, asked[1], "the-key")
		} else {
			require.NotContains(t, asked[1], "ran-it")
			require.Contains(t, said, "makes a sandbox of its own")
		}
		_, err = os.Stat(filepath.Join(b.dir, "work", name))
		require.Equal(t, c.writes, err == nil, name)
	}
}
