package fileheads_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/sampletest"
	"github.com/united-workforce/uwf/util/threadid"
)

// TestNoDamageMakesAStrangerOurs: whatever byte of facts.jsonl is another one, and
// whatever lines of it are gone, a thread that asks where it may work goes on asking,
// also after a repair.
func TestNoDamageMakesAStrangerOurs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	x := fileheads.Open(dir, unflushed{durable.OS()})
	require.NoError(t, x.Add(ctx, id("own"), h1, heads.Facts{}))
	title := "a title"
	strangers := []string{"alpha", "bravo", "charlie"}
	for _, name := range strangers {
		imported := heads.Facts{Imported: &heads.Imported{From: "x.uwfb", AtMs: 5}}
		require.NoError(t, x.Adopt(ctx, []fileheads.Adoption{{Thread: id(name), Head: h1, Facts: imported}}, 1))
		require.NoError(t, x.SetFacts(ctx, id("own"), heads.Facts{Title: &title}))
	}
	files := map[string][]byte{}
	for _, file := range []string{"facts.jsonl", "threads.yaml"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		files[file] = data
	}
	good := files["facts.jsonl"]
	try := func(bad []byte, repair bool) {
		t.Helper()
		files["facts.jsonl"] = bad
		for file, data := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
		}
		ask := func() {
			t.Helper()
			all, _ := x.AllFacts(ctx)
			for _, name := range strangers {
				require.True(t, all[id(name)].Foreign(), "%s with %q", name, bad)
			}
		}
		ask()
		if repair {
			require.True(t, foreign(t, x, "charlie"))
			_, _, err := x.QuarantineFacts(ctx)
			require.NoError(t, err)
			_, err = x.AllFacts(ctx)
			require.NoError(t, err)
			ask()
		}
	}
	sample := sampletest.New(t)
	for at := range good {
		for _, c := range []byte{'\n', 0, good[at] ^ 1} {
			if !sample() {
				continue
			}
			bad := slices.Clone(good)
			bad[at] = c
			try(bad, false)
		}
		if at%7 == 0 || good[at] == '\n' {
			try(append(slices.Clone(good[:at]), good[at+1:]...), true)
		}
	}
	for c := range 256 { // two lines become one
		if c != '\n' {
			at := bytes.IndexByte(good, '\n')
			bad := slices.Clone(good)
			bad[at] = byte(c)
			try(bad, c%32 == 0)
		}
	}
	lines := slices.Collect(bytes.Lines(good))
	for gone := range 1 << len(lines) { // whole lines are lost
		var left []byte
		for i, line := range lines {
			if gone&(1<<i) == 0 {
				left = append(left, line...)
			}
		}
		try(left, true)
		try([]byte("\n"+string(left)), false)
	}
	for at := 0; at+64 < len(good); at += 16 { // a sector
		try(slices.Concat(good[:at], make([]byte, 64), good[at+64:]), true)
	}
}

// What a person takes out on purpose is gone once its number says so, and what a
// forgotten thread had is no loss.
func TestLinesAreTakenOut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := strangers(t)
	path := filepath.Join(dir, "facts.jsonl")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	first, rest, _ := strings.Cut(string(data), "\n")
	require.Contains(t, first, id("settled"))
	require.NoError(t, os.WriteFile(path, []byte(rest), 0o600))
	require.True(t, foreign(t, x, "own"))
	_, err = x.AllFacts(ctx)
	prosetest.Error(t, err, protocol.CodeInvalid)
	threads := text(t, dir, "threads.yaml")
	said := strings.Replace(threads, "# facts.jsonl has 2 lines\n", "# facts.jsonl has 1 lines\n", 1)
	require.NotEqual(t, threads, said)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "threads.yaml"), []byte(said), 0o600))
	require.False(t, foreign(t, x, "own"))
	require.True(t, foreign(t, x, "stranger"))

	require.NoError(t, x.Archive(ctx, ended(id("stranger"), h1)))
	_, err = x.Forget(ctx, map[string]bool{id("stranger"): true})
	require.NoError(t, err)
	require.False(t, foreign(t, x, "own"))
	_, err = x.AllFacts(ctx)
	require.NoError(t, err)
}

// TestNoCommentHidesAThread: the end between a comment and the thread below it may be
// any byte: the thread is missed, and a repair brings it back.
func TestNoCommentHidesAThread(t *testing.T) {
	t.Parallel()
	x, dir := strangers(t)
	path := filepath.Join(dir, "threads.yaml")
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	before, _ := said(t, x)
	for _, good := range []string{string(written), "# a person's words\n" + string(written[bytes.IndexByte(written, '0'):])} {
		head := strings.Index(good, "\n0")
		for c := range 256 {
			if c == '\n' {
				continue
			}
			bad := []byte(good)
			bad[head] = byte(c)
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			require.Error(t, x.DamagedHeads(t.Context()), "%q", bad)
			_, errors := said(t, x)
			require.NotZero(t, errors, "%q", bad)
			_, _, err := x.QuarantineThreads(t.Context())
			require.NoError(t, err)
			after, _ := said(t, x)
			for what, value := range before {
				require.Equal(t, value, after[what], "%q", bad)
			}
		}
	}
}

// TestADamagedIDMakesNoStrangerOurs: a thread whose id in threads.yaml is nearly that of
// an imported one which is nowhere asks, until a person says where it may work.
func TestADamagedIDMakesNoStrangerOurs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := strangers(t)
	threads := text(t, dir, "threads.yaml")
	for _, name := range []string{"stranger", "settled"} {
		for at := range len(id(name)) {
			bad := []byte(id(name))
			bad[at] ^= 1
			if !threadid.Valid(string(bad)) {
				continue
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "threads.yaml"), []byte(strings.Replace(threads, id(name), string(bad), 1)), 0o600))
			facts, err := x.Facts(ctx, string(bad))
			require.NoError(t, err)
			require.True(t, facts.Foreign())
			require.ErrorContains(t, facts.Doubt, id(name))
			_, err = x.AllFacts(ctx)
			require.ErrorContains(t, err, string(bad), "fsck tells")
			require.False(t, foreign(t, x, "own"))
		}
	}
	_, _, err := x.QuarantineFacts(ctx)
	require.NoError(t, err)
	all, err := x.AllFacts(ctx)
	require.NoError(t, err)
	lost := 0
	for _, facts := range all {
		if facts.Imported.Lost && facts.Foreign() {
			lost++
		}
	}
	require.Equal(t, 1, lost)
}
