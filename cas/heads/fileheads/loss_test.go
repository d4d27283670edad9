package fileheads_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/sampletest"
)

// TestNoDamageMakesAStrangerOurs checks that, with any byte of facts.jsonl changed, an unconfirmed imported
// thread still asks where it can work, even after a repair.
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
		require.NoError(t, x.Adopt(ctx, []heads.Adoption{{Thread: id(name), Head: h1, Facts: imported}}, 1))
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
	for c := range 256 { // joins two lines
		if c != '\n' {
			at := bytes.IndexByte(good, '\n')
			bad := slices.Clone(good)
			bad[at] = byte(c)
			try(bad, c%32 == 0)
		}
	}
	for at := 0; at+64 < len(good); at += 16 { // a sector
		try(slices.Concat(good[:at], make([]byte, 64), good[at+64:]), true)
	}
}

// TestNoLostTailMakesAStrangerOurs checks that, with facts.jsonl truncated or zeroed from any point, an
// unconfirmed imported thread still asks where it can work: immediately, after changes and after a repair.
func TestNoLostTailMakesAStrangerOurs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := strangers(t)
	files := map[string][]byte{}
	for _, file := range []string{"facts.jsonl", "threads.yaml"} {
		files[file] = []byte(text(t, dir, file))
	}
	good := files["facts.jsonl"]
	require.Contains(t, string(files["threads.yaml"]), fmt.Sprintf(", with %012d bytes of facts.jsonl\n", len(good)))
	sample := sampletest.New(t)
	for at := range good {
		for _, bad := range [][]byte{good[:at], append(slices.Clone(good[:at]), make([]byte, len(good)-at)...)} {
			if !sample() && at != 0 && at != len(good)-5 {
				continue
			}
			for file, data := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "facts.jsonl"), bad, 0o600))
			stays := func() {
				t.Helper()
				require.True(t, foreign(t, x, "stranger"), "%q", bad)
			}
			stays()
			_, err := x.AllFacts(ctx)
			require.Equal(t, at < len(good)-1, err != nil, "without its end alone the last line is whole")
			require.NoError(t, x.Move(ctx, id("own"), h1, h2))
			stays()
			title := "new"
			require.NoError(t, x.SetFacts(ctx, id("own"), heads.Facts{Title: &title}))
			stays()
			require.NoError(t, x.Add(ctx, id("later"), h1, heads.Facts{}))
			require.False(t, foreign(t, x, "later"))
			_, _, err = x.QuarantineFacts(ctx)
			require.NoError(t, err)
			stays()
			_, err = x.AllFacts(ctx)
			require.NoError(t, err)
		}
	}
}
