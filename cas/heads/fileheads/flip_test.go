package fileheads_test

import (
	"fmt"
	"maps"
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

// contents returns the content of an index and the number of errors reported.
func contents(t *testing.T, x *fileheads.Heads) (all map[string]string, errors int) {
	t.Helper()
	all = map[string]string{}
	add := func(what string, value any, err error) {
		if err != nil {
			errors++
			return
		}
		all[what] = fmt.Sprintf("%+v", value)
	}
	for h, err := range x.Heads(t.Context()) {
		add("active "+h.Thread, h, err)
	}
	for e, err := range x.History(t.Context()) {
		add("ended "+e.Thread, e, err)
	}
	facts, err := x.AllFacts(t.Context())
	if err != nil {
		errors++
	}
	for thread, f := range facts {
		if f.Title != nil { // otherwise it is only in doubt
			add("facts of "+thread, *f.Title, nil)
		}
	}
	names, err := x.Workflows(t.Context())
	if err != nil {
		errors++
	}
	for _, n := range names {
		add("workflow "+n.Name, n, nil)
		if n.Problem != "" {
			errors++
		}
	}
	return all, errors
}

// TestFlippedBytes checks that, for any changed byte, the content is unchanged, an error is reported, or the
// byte belongs to a different well-formed id, hash or name, which only a comparison with nodes and runs can
// detect (cas/fsck). Nothing vanishes, and changing another thread never removes a damaged line.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := fileheads.Open(dir, unflushed{durable.OS()})
	ctx := t.Context()
	for _, name := range []string{"alpha", "bravo", "charlie", "delta"} {
		require.NoError(t, x.Add(ctx, id(name), h1, heads.Facts{}))
	}
	for _, name := range []string{"alpha", "charlie"} {
		require.NoError(t, x.SetFacts(ctx, id(name), heads.Facts{Title: &name}))
	}
	require.NoError(t, x.Archive(ctx, ended(id("charlie"), h1)))
	require.NoError(t, x.Archive(ctx, ended(id("delta"), h1)))
	require.NoError(t, x.Register(ctx, "one", h1))
	require.NoError(t, x.Register(ctx, "two", h2))
	before, errors := contents(t, x)
	require.Zero(t, errors)
	require.Len(t, before, 8)
	sample := sampletest.New(t)
	for _, file := range []string{"history.jsonl", "facts.jsonl", "threads.yaml", "registry.yaml"} {
		exact := filepath.Ext(file) == ".jsonl"
		good, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		for at := range good {
			for _, c := range damages(good[at]) {
				if !sample() {
					continue
				}
				bad := slices.Clone(good)
				bad[at] = c
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), bad, 0o600))
				after, errors := contents(t, x)
				what := fmt.Sprintf("%s: %q in the place of byte %d: %q", file, c, at, bad)
				if maps.Equal(before, after) || errors > 0 {
					continue
				}
				if file == "registry.yaml" && bad[at] == '#' && (at == 0 || good[at-1] == '\n') {
					continue // a person might have made it a comment
				}
				require.False(t, exact, what)
				require.Len(t, after, len(before), what)
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), good, 0o600))
	}
}

// damages returns variants of a byte: each bit flipped, and special characters.
func damages(good byte) []byte {
	all := []byte{0, '\n', '\r', ' ', '#', '%', '"', '\'', '-', '{', ':', '&', '*', '!', '|', '0', 'Z', 0xff}
	for bit := range 8 {
		all = append(all, good^(1<<bit))
	}
	return slices.DeleteFunc(all, func(c byte) bool { return c == good })
}
