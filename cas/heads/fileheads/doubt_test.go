package fileheads_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
)

// strangers creates a home with a local thread, an imported one, and a confirmed imported one; the last line
// is about the imported one.
func strangers(t *testing.T) (*fileheads.Heads, string) {
	t.Helper()
	x, dir := open(t)
	require.NoError(t, x.Add(t.Context(), id("own"), h1, heads.Facts{}))
	imported := func(name string, confirmed bool) heads.Adoption {
		return heads.Adoption{Thread: id(name), Head: h1, Facts: heads.Facts{Imported: &heads.Imported{From: "x.uwfb", AtMs: 5, Confirmed: confirmed}}}
	}
	require.NoError(t, x.Adopt(t.Context(), []heads.Adoption{imported("settled", true)}, 1))
	require.NoError(t, x.Adopt(t.Context(), []heads.Adoption{imported("stranger", false)}, 1))
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

// Whatever happens to the line of an imported thread, it stays imported: immediately, after the next append,
// after a repair, and after a rewrite.
func TestDamageMakesNoThreadOurs(t *testing.T) {
	t.Parallel()
	// line damages the complete last line.
	for name, damage := range map[string]struct {
		line  func(string) string
		all   bool // it is unknown which thread it was about
		fault bool
	}{
		"NUL within":                {line: func(l string) string { return l[:60] + "\x00" + l[61:] }, all: true, fault: true},
		"NUL at the end":            {line: func(l string) string { return strings.TrimSuffix(l, "\n") + "\x00\n" }, all: true, fault: true},
		"no id":                     {line: func(l string) string { return l[:20] + "!" + l[21:] }, all: true, fault: true},
		"NUL in the id":             {line: func(l string) string { return l[:20] + "\x00" + l[21:] }, all: true, fault: true},
		"another id":                {line: func(l string) string { return l[:20] + "7" + l[21:] }, all: true, fault: true},
		"unknown key":               {line: func(l string) string { return strings.Replace(l, "imported", "imXorted", 1) }, fault: true},
		"joined to the line before": {line: func(l string) string { return l[:len(l)-1] + "x" + l }, fault: true},
		"nothing of it":             {line: func(l string) string { return strings.Repeat("\x00", len(l)-1) + "\n" }, all: true, fault: true},
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
				require.Equal(t, damage.all, foreign(t, x, "own"))
				require.Equal(t, damage.all, foreign(t, x, "settled"))
			}
			stays(x)
			_, err = x.AllFacts(t.Context())
			require.Equal(t, damage.fault, err != nil)

			// Facts after the damage count.
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

// Losing the whole file doesn't turn a thread into a local one, because threads.yaml records that there were
// facts. Threads started afterwards are local.
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
	for name, fix := range map[string]func(x *fileheads.Heads) error{
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
		require.NoError(t, fix(x), name)
		require.True(t, foreign(t, x, "stranger"), name)
	}

	// If all were forgotten, or there never were any, nothing is lost.
	x, _ := open(t)
	require.NoError(t, x.Add(ctx, id("own"), h1, heads.Facts{}))
	require.False(t, foreign(t, x, "own"))
	require.NoError(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("old"), Head: h1, End: &heads.Ended{Workflow: h1, Status: "completed"}, Facts: heads.Facts{Imported: &heads.Imported{From: "x"}}}}, 1))
	_, err := x.Forget(ctx, map[string]bool{id("old"): true})
	require.NoError(t, err)
	require.False(t, foreign(t, x, "own"))
}

// Neither a shorter file nor zeros at its end pass for an unacknowledged line.
func TestFactsWithoutTheirEndMakeNoThreadOurs(t *testing.T) {
	t.Parallel()
	x, dir := strangers(t)
	path := filepath.Join(dir, "facts.jsonl")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range len(whole) - 1 {
		zeroed := append(slices.Clone(whole[:n]), make([]byte, len(whole)-n)...)
		for _, left := range [][]byte{whole[:n], zeroed} {
			require.NoError(t, os.WriteFile(path, left, 0o600))
			require.True(t, foreign(t, x, "stranger"), "%q", left)
			_, err := x.AllFacts(t.Context())
			require.Error(t, err, "%q", left)
		}
	}
	require.NoError(t, os.WriteFile(path, append(whole, `{"thread":"0`...), 0o600))
	require.False(t, foreign(t, x, "own"), "of what was never acknowledged the beginning is no damage")
	require.NoError(t, x.Move(t.Context(), id("own"), h1, h2))
	require.NoError(t, x.SetFacts(t.Context(), id("own"), heads.Facts{Labels: map[string]string{"a": "b"}}))
	require.False(t, foreign(t, x, "own"))
}

// If the checksum of threads.yaml is wrong and an imported thread is missing, each active thread without
// facts is in doubt, because its id might be the damaged one. Threads started afterwards are local. This
// lasts until a repair, or until a person deletes the checksum.
func TestAWrongSumMakesNoThreadOurs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, end := range map[string]func(x *fileheads.Heads, dir string) bool{
		"repaired": func(x *fileheads.Heads, _ string) bool {
			_, _, err := x.QuarantineThreads(ctx)
			require.NoError(t, err)
			return true
		},
		"deleted": func(_ *fileheads.Heads, dir string) bool {
			path := filepath.Join(dir, "threads.yaml")
			_, rest, _ := strings.Cut(text(t, dir, "threads.yaml"), "\n")
			require.NoError(t, os.WriteFile(path, []byte(rest), 0o600))
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, dir := strangers(t)
			damaged := id("stringer")
			bad := strings.Replace(text(t, dir, "threads.yaml"), id("stranger"), damaged, 1)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "threads.yaml"), []byte(bad), 0o600))
			stays := func(asks bool) {
				t.Helper()
				require.Equal(t, asks, foreign(t, x, "stringer"))
				require.Equal(t, asks, foreign(t, x, "own"))
				require.False(t, foreign(t, x, "settled"), "its line says where it comes from")
			}
			stays(true)
			require.Error(t, x.DamagedHeads(ctx))
			require.NoError(t, x.Move(ctx, id("own"), h1, h2))
			require.NoError(t, x.Add(ctx, id("later"), h1, heads.Facts{}))
			stays(true)
			require.False(t, foreign(t, x, "later"))
			require.Error(t, x.DamagedHeads(ctx))

			asks := end(x, dir)
			require.NoError(t, x.DamagedHeads(ctx))
			stays(asks)
			require.False(t, foreign(t, x, "later"))
		})
	}
}
