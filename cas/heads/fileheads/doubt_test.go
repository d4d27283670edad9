package fileheads_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
)

// strangers makes a home with an own thread, an imported one, and another one that
// was imported and has its place; the last line is that of the stranger.
func strangers(t *testing.T) (*fileheads.Heads, string) {
	t.Helper()
	x, dir := open(t)
	require.NoError(t, x.Add(t.Context(), id("own"), h1, heads.Facts{}))
	imported := func(name string, confirmed bool) fileheads.Adoption {
		return fileheads.Adoption{Thread: id(name), Head: h1, Facts: heads.Facts{Imported: &heads.Imported{From: "x.uwfb", AtMs: 5, Confirmed: confirmed}}}
	}
	require.NoError(t, x.Adopt(t.Context(), []fileheads.Adoption{imported("settled", true)}, 1))
	require.NoError(t, x.Adopt(t.Context(), []fileheads.Adoption{imported("stranger", false)}, 1))
	return x, dir
}

func foreign(t *testing.T, x *fileheads.Heads, name string) bool {
	t.Helper()
	facts, err := x.Facts(t.Context(), id(name))
	require.NoError(t, err)
	all, _ := x.AllFacts(t.Context())
	require.Equal(t, facts, all[id(name)])
	return facts.Foreign()
}

// Whatever happens to the line of a thread from elsewhere, the thread stays that: at
// once, after the next append, after a repair, after the file is rewritten.
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

			stays := func(x *fileheads.Heads) {
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
			require.NoError(t, x.Add(t.Context(), id("later"), h1, heads.Facts{}))
			require.NoError(t, x.SetFacts(t.Context(), id("later"), heads.Facts{Title: &title, Imported: &heads.Imported{From: "y", Confirmed: true}}))
			stays(x)
			require.False(t, foreign(t, x, "later"))

			_, _, err = x.QuarantineFacts(t.Context())
			require.NoError(t, err)
			_, err = x.AllFacts(t.Context())
			require.NoError(t, err)
			stays(x)

			require.NoError(t, x.Add(t.Context(), id("old"), h1, heads.Facts{}))
			require.NoError(t, x.Archive(t.Context(), ended(id("old"), h1)))
			_, err = x.Forget(t.Context(), map[string]bool{id("old"): true})
			require.NoError(t, err)
			stays(fileheads.Open(dir, durable.OS()))

			require.NoError(t, x.SetFacts(t.Context(), id("stranger"), heads.Facts{Imported: &heads.Imported{From: "x.uwfb", Confirmed: true}}))
			require.False(t, foreign(t, x, "stranger"))
		})
	}
}

// A file that is lost as a whole makes no thread ours either: that there were facts is
// said in threads.yaml, too. Threads that begin afterwards are ours.
func TestLostFactsMakeNoThreadOurs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, lose := range map[string]func(path string) error{
		"gone":   os.Remove,
		"empty":  func(path string) error { return os.Truncate(path, 0) },
		"zeroed": func(path string) error { return os.WriteFile(path, make([]byte, 500), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, dir := strangers(t)
			require.NoError(t, lose(filepath.Join(dir, "facts.jsonl")))
			stay := func() {
				t.Helper()
				for _, thread := range []string{"own", "settled", "stranger"} {
					require.True(t, foreign(t, x, thread), thread)
				}
			}
			stay()
			facts, err := x.Facts(ctx, id("stranger"))
			require.NoError(t, err)
			require.ErrorContains(t, facts.Doubt, "facts.jsonl")
			_, err = x.AllFacts(ctx)
			require.Error(t, err, "fsck tells")
			require.NoError(t, x.Move(ctx, id("own"), h1, h2))
			stay()
			require.NoError(t, x.Add(ctx, id("later"), h1, heads.Facts{}))
			require.False(t, foreign(t, x, "later"))
			stay()
			require.NoError(t, x.SetFacts(ctx, id("own"), heads.Facts{Imported: &heads.Imported{Lost: true, Confirmed: true}}))
			require.False(t, foreign(t, x, "own"))
			require.True(t, foreign(t, x, "stranger"))
			_, _, err = x.QuarantineFacts(ctx)
			require.NoError(t, err)
			_, err = x.AllFacts(ctx)
			require.NoError(t, err)
			require.True(t, foreign(t, x, "stranger"))
		})
	}
	for name, mend := range map[string]func(x *fileheads.Heads) error{
		"repaired": func(x *fileheads.Heads) error { _, _, err := x.QuarantineFacts(ctx); return err },
		"pruned": func(x *fileheads.Heads) error {
			if err := x.Archive(ctx, ended(id("own"), h1)); err != nil {
				return err
			}
			_, err := x.Forget(ctx, map[string]bool{id("own"): true})
			return err
		},
	} {
		x, dir := strangers(t)
		require.NoError(t, os.Remove(filepath.Join(dir, "facts.jsonl")))
		require.NoError(t, mend(x), name)
		require.True(t, foreign(t, x, "stranger"), name)
	}

	// Where all were forgotten, or there never were any, nothing is lost.
	x, dir := open(t)
	require.NoError(t, x.Add(ctx, id("own"), h1, heads.Facts{}))
	require.False(t, foreign(t, x, "own"))
	require.NoError(t, x.Adopt(ctx, []fileheads.Adoption{{Thread: id("old"), Head: h1, End: &heads.Ended{Workflow: h1, Status: "completed"}, Facts: heads.Facts{Imported: &heads.Imported{From: "x"}}}}, 1))
	_, err := x.Forget(ctx, map[string]bool{id("old"): true})
	require.NoError(t, err)
	require.False(t, foreign(t, x, "own"))
	require.Contains(t, text(t, dir, "threads.yaml"), "# facts.jsonl")
}

// A line without a sum says what it says in one way only: what a person overlooks is
// not taken.
func TestALineWithoutASumIsExact(t *testing.T) {
	t.Parallel()
	const head, tail = `{"thread":"@stranger",`, "}\n"
	for _, says := range []string{
		`"imported":{"from":"x","atMs":5,"Confirmed":true}`, `"imported":{"from":"x","atMs":5,"confirmed":false,"confirmed":true}`,
		`"imported":{"from":"x","atMs":5},"imported":{"from":"x","atMs":5,"confirmed":true}`, `"Imported":{"from":"x","atMs":5,"confirmed":true}`,
		`"imported":{"from":"x","atMs":5,"confirmed":true,"x":1}`, `"imported":null,"imported":null`, `"imported":{"from":"x","\u0061tMs":5,"atMs":5,"confirmed":true}`,
	} {
		x, dir := strangers(t)
		path := filepath.Join(dir, "facts.jsonl")
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, append(old, ids(head+says+tail)...), 0o600))
		require.True(t, foreign(t, x, "stranger"), says)
		_, err = x.AllFacts(t.Context())
		require.Error(t, err, says)
	}
	x, dir := strangers(t)
	path := filepath.Join(dir, "facts.jsonl")
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(old, ids(head+`"imported":{"from":"x","atMs":5,"confirmed":true}`+tail)...), 0o600))
	require.False(t, foreign(t, x, "stranger"), "a person may say so")
}
