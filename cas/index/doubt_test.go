package index_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/util/durable"
)

// strangers makes a home with an own thread, an imported one, and another one that
// was imported and has its place; the last line is that of the stranger.
func strangers(t *testing.T) (*index.Index, string) {
	t.Helper()
	x, dir := open(t)
	require.NoError(t, x.Add(t.Context(), id("own"), h1))
	imported := func(name string, confirmed bool) index.Adoption {
		return index.Adoption{Thread: id(name), Head: h1, Facts: index.Facts{Imported: &index.Imported{From: "x.uwfb", AtMs: 5, Confirmed: confirmed}}}
	}
	require.NoError(t, x.Adopt(t.Context(), []index.Adoption{imported("settled", true)}, 1))
	require.NoError(t, x.Adopt(t.Context(), []index.Adoption{imported("stranger", false)}, 1))
	return x, dir
}

func foreign(t *testing.T, x *index.Index, name string) bool {
	t.Helper()
	facts, err := x.Facts(t.Context(), id(name))
	require.NoError(t, err)
	all, _ := x.AllFacts(t.Context())
	require.Equal(t, facts, all[id(name)])
	return facts.Foreign()
}

// Whatever happens to the line of a thread from elsewhere, the thread stays that: at
// once, after the next append, after a repair, after the file is written anew.
func TestDamageMakesNoThreadOurs(t *testing.T) {
	t.Parallel()
	// line damages the last line, which has its end.
	for name, damage := range map[string]struct {
		line  func(string) string
		all   bool // nobody can tell which thread it was about
		fault bool
	}{
		"NUL within":     {line: func(l string) string { return l[:60] + "\x00" + l[61:] }, fault: true},
		"NUL at the end": {line: func(l string) string { return strings.TrimSuffix(l, "\n") + "\x00\n" }, fault: true},
		"no id":          {line: func(l string) string { return l[:20] + "!" + l[21:] }, all: true, fault: true},
		"NUL in the id":  {line: func(l string) string { return l[:20] + "\x00" + l[21:] }, all: true, fault: true},
		"another id":     {line: func(l string) string { return l[:20] + "7" + l[21:] }, all: true, fault: true},
		"unknown key":    {line: func(l string) string { return strings.Replace(l, "imported", "imXorted", 1) }, fault: true},
		"and no sum": {line: func(l string) string {
			return strings.Replace(l[:strings.Index(l, `,"check"`)], "imported", "imXorted", 1) + "}\n"
		}, fault: true},
		"unknown sum":      {line: func(l string) string { return strings.Replace(l, `"check"`, `"chEck"`, 1) }, fault: true},
		"nothing of it":    {line: func(l string) string { return strings.Repeat("\x00", len(l)-1) + "\n" }, all: true, fault: true},
		"torn":             {line: func(l string) string { return l[:50] }},
		"torn in the id":   {line: func(l string) string { return l[:20] }, all: true},
		"zeros behind":     {line: func(l string) string { return l[:50] + strings.Repeat("\x00", len(l)-50) }},
		"zeros to the end": {line: func(l string) string { return strings.Repeat("\x00", len(l)) }, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, dir := strangers(t)
			path := filepath.Join(dir, "facts.jsonl")
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			at := strings.LastIndexByte(string(whole[:len(whole)-1]), '\n') + 1
			require.NoError(t, os.WriteFile(path, []byte(string(whole[:at])+damage.line(string(whole[at:]))), 0o600))

			stays := func(x *index.Index) {
				t.Helper()
				require.True(t, foreign(t, x, "stranger"))
				if damage.all && strings.Contains(name, "in the id") && !damage.fault {
					return // the other ids may begin otherwise
				}
				require.Equal(t, damage.all, foreign(t, x, "own"))
				require.Equal(t, damage.all, foreign(t, x, "settled"))
			}
			stays(x)
			_, err = x.AllFacts(t.Context())
			require.Equal(t, damage.fault, err != nil)

			// What is said of a thread behind the damage counts.
			title := "new"
			require.NoError(t, x.Add(t.Context(), id("later"), h1))
			require.NoError(t, x.SetFacts(t.Context(), id("later"), index.Facts{Title: &title, Imported: &index.Imported{From: "y", Confirmed: true}}))
			stays(x)
			require.False(t, foreign(t, x, "later"))

			_, _, err = x.QuarantineFacts(t.Context())
			require.NoError(t, err)
			_, err = x.AllFacts(t.Context())
			require.NoError(t, err)
			stays(x)

			require.NoError(t, x.Add(t.Context(), id("old"), h1))
			require.NoError(t, x.Archive(t.Context(), ended(id("old"), h1)))
			_, err = x.Forget(t.Context(), map[string]bool{id("old"): true})
			require.NoError(t, err)
			stays(index.Open(dir, durable.OS()))

			require.NoError(t, x.SetFacts(t.Context(), id("stranger"), index.Facts{Imported: &index.Imported{From: "x.uwfb", Confirmed: true}}))
			require.False(t, foreign(t, x, "stranger"))
		})
	}
}
