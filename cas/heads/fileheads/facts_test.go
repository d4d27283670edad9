package fileheads_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/fuzztest"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := open(t)
	known := func(thread string) heads.Facts {
		t.Helper()
		f, err := x.Facts(ctx, thread)
		require.NoError(t, err)
		all, err := x.AllFacts(ctx)
		require.NoError(t, err)
		require.Equal(t, f, all[thread])
		return f
	}
	require.Zero(t, known(id("a")))
	require.NoError(t, x.Add(ctx, id("a"), h1, heads.Facts{}))
	require.NoFileExists(t, filepath.Join(dir, "facts.jsonl"), "a thread without facts has no line")

	imported := heads.Imported{From: "x.uwfb", AtMs: 5}
	require.NoError(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("b"), Head: h1, Facts: heads.Facts{Imported: &imported}}, {Thread: id("c"), Head: h2}}, 1))
	require.Equal(t, sums("{\"thread\":\"@b\",\"imported\":{\"from\":\"x.uwfb\",\"atMs\":5}}\n"), text(t, dir, "facts.jsonl"))
	require.True(t, known(id("b")).Foreign())
	require.False(t, known(id("b")).StartedHere())
	require.True(t, known(id("c")).StartedHere())

	title := "mine"
	require.NoError(t, x.SetFacts(ctx, id("b"), heads.Facts{Title: &title, Labels: map[string]string{"k": "v"}}))
	imported.Confirmed = true
	workspace := &heads.Workspace{Mode: "none", Root: "/w"}
	require.NoError(t, x.SetFacts(ctx, id("b"), heads.Facts{Imported: &imported, Workspace: workspace}))
	require.Equal(t, heads.Facts{Imported: &imported, Title: &title, Labels: map[string]string{"k": "v"}, Workspace: workspace}, known(id("b")))
	require.False(t, known(id("b")).Foreign())

	fork := heads.Facts{Fork: &heads.Fork{Thread: id("b"), Step: h1}, Imported: &heads.Imported{From: "x.uwfb", AtMs: 5, Inherited: true}}
	require.NoError(t, x.Add(ctx, id("d"), h1, fork))
	require.Equal(t, fork, known(id("d")))
	require.True(t, known(id("d")).Foreign())
	require.True(t, known(id("d")).StartedHere())

	require.Error(t, x.SetFacts(ctx, id("b"), heads.Facts{Labels: map[string]string{"k": strings.Repeat("v", 1<<20)}}), "too long")
	require.Error(t, x.Add(ctx, id("d"), h2, heads.Facts{Title: &title}), "it is there")
	require.Nil(t, known(id("d")).Title)
}

// Fields of a newer uwf survive a rewrite; null removes a field; an unreadable line is kept, and affects only
// its own thread.
func TestFactsOfOthers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	content := sums(`{"thread":"@a","title":"one","colour":{"b":1}}
`) + `{"thread":"@old","title":"gone"}

{"thread":"@a","title":"two","labels":{"x":"y"}}
{"thread":"@bad","title":
{"thread":"@a","labels":null}
{"title":"nobody"}
{"thread":"@b","title":7}
{"thread":"@torn","tit`
	x, dir := with(t, "facts.jsonl", content)
	title := "two"
	f, err := x.Facts(ctx, id("a"))
	require.NoError(t, err)
	require.Equal(t, heads.Facts{Title: &title}, f)
	for thread, line := range map[string]string{id("bad"): ":5:", id("b"): ":8:"} {
		facts, err := x.Facts(ctx, thread)
		require.NoError(t, err)
		require.ErrorIs(t, facts.Doubt, &protocol.Error{Code: protocol.CodeInvalid})
		require.ErrorContains(t, facts.Doubt, filepath.Join(dir, "facts.jsonl")+line)
	}
	f, err = x.Facts(ctx, id("torn"))
	require.NoError(t, err, "a kill has torn it: nobody was told that it is there")
	require.Zero(t, f)
	all, err := x.AllFacts(ctx)
	require.Equal(t, heads.Facts{Title: &title}, all[id("a")])
	for _, line := range []string{":5:", ":7:", ":8:"} {
		require.ErrorContains(t, err, line)
	}

	require.NoError(t, x.SetFacts(ctx, id("new"), heads.Facts{Title: &title}))
	require.True(t, strings.HasSuffix(text(t, dir, "facts.jsonl"), ids("{\"thread\":\"@b\",\"title\":7}\n")+sums("{\"thread\":\"@new\",\"title\":\"two\"}\n")), "the torn line is cut off")

	require.NoError(t, x.Add(ctx, id("old"), h1, heads.Facts{}))
	require.NoError(t, x.Archive(ctx, ended(id("old"), h1)))
	_, err = x.Forget(ctx, map[string]bool{id("old"): true})
	require.NoError(t, err)
	bad := ids("{\"thread\":\"@bad\",\"title\":\n{\"title\":\"nobody\"}\n{\"thread\":\"@b\",\"title\":7}\n")
	good := sums("{\"thread\":\"@a\",\"colour\":{\"b\":1},\"title\":\"two\"}\n{\"thread\":\"@new\",\"title\":\"two\"}\n")
	require.Equal(t, good+bad, text(t, dir, "facts.jsonl"))

	n, to, err := x.QuarantineFacts(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	lost := sums("{\"thread\":\"@bad\",\"imported\":{\"from\":\"\",\"atMs\":0,\"lost\":true}}\n{\"thread\":\"@b\",\"imported\":{\"from\":\"\",\"atMs\":0,\"lost\":true}}\n")
	require.Equal(t, good+lost, text(t, dir, "facts.jsonl"))
	moved, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, bad, string(moved))
}

// Repeated reads of all facts reflect the current file, regardless of its earlier content.
func TestFactsAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := open(t)
	title := func(text string) heads.Facts { return heads.Facts{Title: &text} }
	all := func() map[string]heads.Facts {
		t.Helper()
		all, err := x.AllFacts(ctx)
		require.NoError(t, err)
		return all
	}
	require.NoError(t, x.Add(ctx, id("a"), h1, title("a")))
	require.NoError(t, x.Add(ctx, id("b"), h1, title("b")))
	before := all()
	require.NoError(t, x.SetFacts(ctx, id("a"), title("another")))
	require.NoError(t, x.Add(ctx, id("c"), h1, title("c")))
	require.Equal(t, map[string]heads.Facts{id("a"): title("another"), id("b"): title("b"), id("c"): title("c")}, all())
	require.Equal(t, title("a"), before[id("a")], "what was told is not changed")

	path := filepath.Join(dir, "facts.jsonl")
	good := text(t, dir, "facts.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(good, `"b"`, `"B"`, 1)), 0o600))
	damaged, err := x.AllFacts(ctx)
	require.ErrorContains(t, err, path+":2:")
	require.Error(t, damaged[id("b")].Doubt)
	require.NoError(t, os.WriteFile(path, []byte(good), 0o600))
	require.Len(t, all(), 3)
}

// FuzzFacts checks that, with any file content, new facts of a thread are readable, those of others stay, and
// reading one thread agrees with reading all.
func FuzzFacts(f *testing.F) {
	const whole = `{"thread":"@a","imported":{"from":"x","atMs":1},"colour":"red"}`
	for _, text := range []string{
		"", "\n", whole, sums(whole), whole + "\n", whole + "\n" + whole[:30], whole + "\n\x00\x00", "x\n" + whole + "\n", whole[:20] + "\n" + whole + "\n",
		`{"thread":"@a","title":null}`, `{"thread":"@a","limits":[1],"undone":["x"]}` + "\n", "\r\n" + whole + "\r\n", `{"thread":"@fuzzed","title":1}` + "\n",
	} {
		f.Add([]byte(ids(text)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzztest.Bounded(t)()
		dir := t.TempDir()
		x := fileheads.Open(dir, unflushed{durable.OS()})
		require.NoError(t, os.WriteFile(filepath.Join(dir, "facts.jsonl"), text, 0o644))
		before, _ := x.AllFacts(t.Context())
		title := "new"
		require.NoError(t, x.SetFacts(t.Context(), id("fuzzed"), heads.Facts{Title: &title}))
		check := func() {
			t.Helper()
			after, _ := x.AllFacts(t.Context())
			require.Equal(t, &title, after[id("fuzzed")].Title)
			delete(after, id("fuzzed"))
			delete(before, id("fuzzed"))
			require.Len(t, after, len(before))
			for thread, was := range before {
				is := after[thread]
				require.False(t, was.Foreign() && !is.Foreign(), "nothing makes it one of ours")
				if was.Doubt != nil {
					was.Doubt, is.Doubt, was.Imported, is.Imported = nil, nil, nil, nil
				}
				require.Equal(t, was, is)
			}
		}
		check()
		if got, err := x.Facts(t.Context(), id("fuzzed")); err == nil {
			require.Equal(t, &title, got.Title)
		}
		_, _, err := x.QuarantineFacts(t.Context())
		require.NoError(t, err)
		check()
	})
}
