package offlimits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// However a config begins, a setting that starts a program is found after it.
func FuzzHarmless(f *testing.F) {
	for _, seed := range []string{"", "[core]\n\tbare = false\n", "[remote \"a\"]\n url = x\n", "[core]\nbare = \"\n", "[a \"\n", "# \\\n", "[user]\nname = a # \\\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !harmless(nil, []byte(text)) {
			return
		}
		require.False(t, harmless(nil, []byte(text+"\n[core]\n\tfsmonitor = id\n")))
		require.False(t, harmless([]byte(text), []byte(text+"\n[include]\n\tpath = x\n")))
	})
}
