package offlimits

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// However a config begins, a setting that starts a program is found after it.
func FuzzHarmless(f *testing.F) {
	for _, seed := range []string{"", "[core]\n\tbare = false\n", "[remote \"a\"]\n url = x\n", "[core]\nbare = \"\n", "[a \"\n", "# \\\n", "[user]\nname = a # \\\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		harmless := func(old, changed []byte) bool {
			kept, ok := tamed(old, changed, ground{})
			return ok && bytes.Equal(kept, changed)
		}
		if !harmless(nil, []byte(text)) {
			return
		}
		require.False(t, harmless(nil, []byte(text+"\n[core]\n\tfsmonitor = id\n")))
		require.False(t, harmless([]byte(text), []byte(text+"\n[include]\n\tpath = x\n")))
	})
}

func TestOnlyWhatCouldStartAProgramIsTakenOut(t *testing.T) {
	t.Parallel()
	g := ground{git: "/w/.git", top: "/w", writable: []string{"/w"}}
	for _, c := range []struct{ old, changed, kept string }{
		{"", "[core]\n\tfsmonitor = id\n\tbare = false\n[alias]\n\tx = !id\n[user]\n\tname = a\n", "[core]\n\tbare = false\n[user]\n\tname = a\n"},
		{"[core]\n\tpager = less\n", "[core]\n\tpager = less\n\teditor = id\n[merge]\nconflictStyle = zdiff3\n", "[core]\n\tpager = less\n[merge]\nconflictStyle = zdiff3\n"},
		{"", "[a]\n[core]\n\tfsmonitor = id\n# x\n\tbare = true\n", "[a]\n[core]\n# x\n\tbare = true\n"},
		{"", "[remote \"o\"]\n\turl = /w/evil\n\tfetch = x\n[remote \"p\"]\n\turl = https://example.org/x\n\tfetch = y\n", "[remote \"p\"]\n\turl = https://example.org/x\n\tfetch = y\n"},
		{"", "[branch \"m\"]\n\tremote = evil\n\tmerge = x\n[branch \"n\"]\n\tremote = .\n", "[branch \"m\"]\n\tmerge = x\n[branch \"n\"]\n\tremote = .\n"},
		{"[remote \"o\"]\n\turl = a:b\n", "[remote \"o\"]\n\turl = a:b\n\tpushurl = file:///w/x\n\tpushurl = /elsewhere\n", "[remote \"o\"]\n\turl = a:b\n\tpushurl = /elsewhere\n"},
		{"", "[remote \"o\"]\n\turl = x\n[remote \"p\"]\n\turl = \"../w/x\"\n[remote \"q\"]\n\turl = ext://sh\n[remote \"r\"]\n\turl = ../x\n", "[remote \"r\"]\n\turl = ../x\n"},
	} {
		kept, ok := tamed([]byte(c.old), []byte(c.changed), g)
		require.True(t, ok)
		require.Equal(t, c.kept, string(kept))
	}
	for _, c := range [][2]string{
		{"[core]\npager = a\n", "[core]\npager = b\n"}, {"", "[core] pager = b\n"}, {"", "[core]\npager = b\\\n"}, {"", "[a] # x\n"}, {"", "[a.b]\n"},
	} {
		_, ok := tamed([]byte(c[0]), []byte(c[1]), g)
		require.False(t, ok, c)
	}
}
