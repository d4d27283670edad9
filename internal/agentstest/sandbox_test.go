//go:build agents

package agentstest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownSandbox tests codex's sandbox alone and within ours. Within ours it gets no list of unreadable paths,
// and its commands can read its login.
func ownSandbox(t *testing.T, b *bench) {
	if runtime.GOOS != "linux" {
		return
	}
	shell(t, b.home, "mkdir -p .ssh && echo the-ke''y > .ssh/id && mkdir -p .codex && echo '{}' > .codex/auth.json")
	for _, c := range []struct {
		permission, mode string
		seen             []string
		writes           bool
	}{
		{"edits", "none", []string{"no-key", "no-config", "store"}, true}, {"read-only", "none", []string{"no-key", "no-config", "store"}, false},
		{"edits", "required", []string{"no-key", "no-config"}, true}, {"read-only", "required", []string{"no-key", "no-config"}, false},
	} {
		b.configure(map[string]any{"sandbox": map[string]any{"mode": c.mode}, "permission": c.permission})
		b.thread = b.begun()
		name := c.permission + "-" + c.mode
		b.model.play(reply{text: "I try.", run: "printf ran-%s it; cat " + b.home + "/.ssh/id || printf no-%s key; cat " + b.home + "/.codex/auth.json " + b.dir + "/home/config.yaml || printf no-%s config; test -r " + b.dir + "/home/cas/format.json && printf st''ore; echo x > " + name}, reply{text: answer("fog")})
		_, said, err := b.step()
		require.NoError(t, err, said)
		asked := b.model.asked()
		for _, seen := range append(c.seen, "ran-it") {
			require.Contains(t, asked[1], seen)
		}
		require.NotContains(t, said, "warning")
		require.NotContains(t, asked[1], "the-key")
		_, err = os.Stat(filepath.Join(b.dir, "work", name))
		require.Equal(t, c.writes, err == nil, name)
	}
}
