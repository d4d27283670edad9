package bundle_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// gitObjects contains files and directories in git's format.
type gitObjects map[protocol.Tree][]byte

func (g gitObjects) Object(_ context.Context, id protocol.Tree, _ bool) ([]byte, error) {
	content, ok := g[id]
	if !ok {
		return nil, fmt.Errorf("object %s is not there", id)
	}
	return content, nil
}

func (g gitObjects) put(word string, content []byte) protocol.Tree {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", word, len(content)), content...))
	id := protocol.Tree("sha1:" + hex.EncodeToString(sum[:]))
	g[id] = content
	return id
}

func (g gitObjects) file(content string) protocol.Tree { return g.put("blob", []byte(content)) }

// dir creates a directory of "mode name" → object, in git's order.
func (g gitObjects) dir(entries ...any) protocol.Tree {
	var content []byte
	for i := 0; i < len(entries); i += 2 {
		sum, _ := hex.DecodeString(strings.TrimPrefix(string(entries[i+1].(protocol.Tree)), "sha1:"))
		content = append(append(append(content, entries[i].(string)...), 0), sum...)
	}
	return g.put("tree", content)
}

// stepFiles makes a step that references files.
func (w *world) stepFiles(id string, output any, files protocol.Files) cas.Hash {
	w.t.Helper()
	ctx := context.Background()
	head := w.append(w.head(id), output)
	s, err := cas.Read[protocol.Step](ctx, w.store, head)
	require.NoError(w.t, err)
	chain, err := thread.Open(ctx, w.store, w.head(id))
	require.NoError(w.t, err)
	b := w.batch()
	next, err := chain.Append(ctx, b, protocol.Step{
		Role: "r", Agent: s.Agent, EdgePrompt: s.EdgePrompt, Cwd: "/", Output: s.Output, Detail: s.Detail, Prompt: s.Prompt,
		ExtractedBy: s.ExtractedBy, Root: "/", Files: &files,
	})
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	require.NoError(w.t, w.index.Move(ctx, id, w.head(id), next))
	return next
}

// withFiles returns a home with a thread that has the files of two steps, and a step with missing files.
func withFiles(t *testing.T) (*world, gitObjects, []protocol.Tree) {
	g := gitObjects{}
	text, other := g.file("text"), g.file(strings.Repeat("other\n", 10_000))
	one := g.dir("100644 a", text, "120000 link", g.file("sub/b"), "40000 sub", g.dir("100755 b", other))
	two := g.dir("100644 a", other, "160000 module", protocol.Tree("sha1:"+strings.Repeat("1", 40)))
	w := newWorld(t, cas.XXH3)
	w.start(idA)
	w.stepFiles(idA, map[string]any{"n": 1}, protocol.Files{Tree: one, Before: two})
	w.stepFiles(idA, map[string]any{"n": 2}, protocol.Files{Tree: protocol.Tree("sha1:" + strings.Repeat("2", 40))})
	return w, g, []protocol.Tree{one, two}
}

// exportFiles exports all threads with the existing files.
func (w *world) exportFiles(g gitObjects) ([]byte, bundle.Written, error) {
	w.t.Helper()
	ctx := context.Background()
	m, err := bundle.Collect(ctx, w.store, w.index, nil)
	require.NoError(w.t, err)
	_, err = m.AddTrees(ctx, w.store, func(_ string, tree protocol.Tree) (protocol.Tree, error) {
		if g[tree] == nil {
			return "", nil
		}
		return tree, nil
	})
	require.NoError(w.t, err)
	var out bytes.Buffer
	written, err := bundle.Write(ctx, &out, w.store, m, g)
	return out.Bytes(), written, err
}

// received opens a bundle as a stream.
func received(t *testing.T, data []byte) (*bundle.File, error) {
	t.Helper()
	spool, err := os.Create(filepath.Join(t.TempDir(), "spool"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = spool.Close() })
	return bundle.Receive(t.Context(), bytes.NewReader(data), spool)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w, g, _ := withFiles(t)
	title := "what it is about"
	setTitle(t, w, idA, title)
	data, written, err := w.exportFiles(g)
	require.NoError(t, err)
	require.Equal(t, 2, written.Trees)
	require.Equal(t, 6, written.Objects)
	require.Empty(t, written.Links)
	require.Less(t, len(data), 20_000, "it is compressed")
	again, _, err := w.exportFiles(g)
	require.NoError(t, err)
	require.Equal(t, data, again)

	f, err := received(t, data)
	require.NoError(t, err)
	report, err := f.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, report.Trees)
	require.Equal(t, 6, report.Objects)

	to := newWorld(t, cas.XXH3)
	imported, err := f.Import(t.Context(), bundle.Target{Store: to.store, Index: to.index}, bundle.ImportOptions{Now: clock,
		Keep: func(_ context.Context, f *bundle.File) (int, error) {
			require.Empty(t, to.head(idA), "before the thread is there")
			n := 0
			for o, err := range f.Without(t.Context(), nil).Objects("sha1") {
				require.NoError(t, err)
				word := "blob"
				if o.Dir {
					word = "tree"
				}
				require.Contains(t, g, gitObjects{}.put(word, o.Content))
				n++
			}
			require.Equal(t, f.Without(t.Context(), nil).Count("sha1"), n)
			return len(f.Manifest.Trees), nil
		}})
	require.NoError(t, err)
	require.Equal(t, 2, imported.Trees)
	require.Equal(t, w.head(idA), to.head(idA))
	facts, err := to.index.Facts(t.Context(), idA)
	require.NoError(t, err)
	require.Equal(t, &title, facts.Title)

	// Without files the bundle is the same as ever.
	require.True(t, bytes.HasPrefix(w.export(idA), []byte("uwf bundle 1\n")))
	require.NotContains(t, string(w.export(idA)), title)
}

// Hostile files aren't accepted as a bundle, or aren't imported.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	sha := func(g gitObjects) protocol.Tree { return g.file("x") }
	deep := func(g gitObjects, levels, wide int) protocol.Tree {
		at := g.dir("100644 a", sha(g))
		for range levels {
			var entries []any
			for i := range wide {
				entries = append(entries, fmt.Sprintf("40000 %c", 'a'+i), at)
			}
			at = g.dir(entries...)
		}
		return at
	}
	for name, c := range map[string]struct {
		tree func(g gitObjects) protocol.Tree
	}{
		"git directory":     {func(g gitObjects) protocol.Tree { return g.dir("40000 .git", g.dir("100644 config", sha(g))) }},
		"as Windows has it": {func(g gitObjects) protocol.Tree { return g.dir("100644 GIT~1", sha(g)) }},
		"with a dot":        {func(g gitObjects) protocol.Tree { return g.dir("100644 .Git . ", sha(g)) }},
		"a stream of it":    {func(g gitObjects) protocol.Tree { return g.dir("100644 .git::$INDEX_ALLOCATION", sha(g)) }},
		"as macOS has it":   {func(g gitObjects) protocol.Tree { return g.dir("100644 .g\u200cit", sha(g)) }},
		"modules by a link": {func(g gitObjects) protocol.Tree { return g.dir("120000 .gitmodules", sha(g)) }},
		"up":                {func(g gitObjects) protocol.Tree { return g.dir("40000 ..", g.dir("100644 a", sha(g))) }},
		"itself":            {func(g gitObjects) protocol.Tree { return g.dir("100644 .", sha(g)) }},
		"a path":            {func(g gitObjects) protocol.Tree { return g.dir("100644 ../a", sha(g)) }},
		"no name":           {func(g gitObjects) protocol.Tree { return g.dir("100644 ", sha(g)) }},
		"a name twice":      {func(g gitObjects) protocol.Tree { return g.dir("100644 a", sha(g), "100644 a", sha(g)) }},
		"link and directory": {func(g gitObjects) protocol.Tree {
			return g.dir("120000 a", sha(g), "100644 a.b", sha(g), "40000 a", g.dir())
		}},
		"not in order":      {func(g gitObjects) protocol.Tree { return g.dir("100644 b", sha(g), "100644 a", sha(g)) }},
		"a device":          {func(g gitObjects) protocol.Tree { return g.dir("060000 a", sha(g)) }},
		"set-uid":           {func(g gitObjects) protocol.Tree { return g.dir("104755 a", sha(g)) }},
		"torn":              {func(g gitObjects) protocol.Tree { return g.put("tree", []byte("100644 a\x00short")) }},
		"a link to nothing": {func(g gitObjects) protocol.Tree { return g.dir("120000 a", g.file("")) }},
		"a long link":       {func(g gitObjects) protocol.Tree { return g.dir("120000 a", g.file(strings.Repeat("a", 5000))) }},
		"file and directory": {func(g gitObjects) protocol.Tree {
			d := g.dir()
			return g.dir("40000 a", d, "100644 b", d)
		}},
		"a million files of a few": {func(g gitObjects) protocol.Tree { return deep(g, 10, 10) }},
		"very deep":                {func(g gitObjects) protocol.Tree { return deep(g, 1100, 1) }},
		"a link up": {func(g gitObjects) protocol.Tree {
			return g.dir("40000 a", g.dir("40000 b", g.dir("120000 c", g.file("../../../etc"))))
		}},
		"a link to a place": {func(g gitObjects) protocol.Tree { return g.dir("120000 a", g.file("/etc/passwd")) }},
		"a link by a link":  {func(g gitObjects) protocol.Tree { return g.dir("120000 a", g.file("b/../../c")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, g := newWorld(t, cas.XXH3), gitObjects{}
			w.start(idA)
			w.stepFiles(idA, map[string]any{"n": 1}, protocol.Files{Tree: c.tree(g)})
			data, written, err := w.exportFiles(g)
			if len(written.Links) == 0 { // we can't write it, so there is nothing to read
				prosetest.Error(t, err)
				return
			}
			require.NoError(t, err)
			f, err := received(t, data)
			require.NoError(t, err)
			to := newWorld(t, cas.XXH3)
			before := snapshot(t, to.home)
			keep := func(context.Context, *bundle.File) (int, error) { return 0, nil }
			_, err = f.Import(t.Context(), bundle.Target{Store: to.store, Index: to.index}, bundle.ImportOptions{Now: clock, Keep: keep})
			prosetest.Error(t, err)
			require.Equal(t, before, snapshot(t, to.home))
			_, err = f.Import(t.Context(), bundle.Target{Store: to.store, Index: to.index}, bundle.ImportOptions{Now: clock, Keep: keep, Links: true})
			require.NoError(t, err)
		})
	}
}

// A hand-made stream is checked just as thoroughly.
func TestForgedFiles(t *testing.T) {
	t.Parallel()
	w, g, _ := withFiles(t)
	data, _, err := w.exportFiles(g)
	require.NoError(t, err)
	plain := inflate(t, data)
	record := func(kind byte, content string) []byte {
		word := map[byte]string{'f': "blob", 'd': "tree"}[kind]
		id := gitObjects{}.put(word, []byte(content))
		sum, _ := hex.DecodeString(strings.TrimPrefix(string(id), "sha1:"))
		body := append(append([]byte{20}, sum...), content...)
		return append([]byte{kind, 0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	}
	for name, c := range map[string]struct {
		change func(r *raw)
		fails  bool
	}{
		"as it is":      {func(*raw) {}, false},
		"a file more":   {func(r *raw) { r.records = append(r.records, record('f', "more")) }, true},
		"a file twice":  {func(r *raw) { r.records = append(r.records, r.records[len(r.records)-1]) }, true},
		"a file less":   {func(r *raw) { r.records = slices.Delete(r.records, len(r.records)-3, len(r.records)-2) }, true},
		"another order": {func(r *raw) { slices.Reverse(r.records[len(r.records)-6:]) }, true},
		"a node after them": {func(r *raw) {
			r.records = append(r.records, recordOf(textNode(t, "late")))
		}, true},
		"another content": {func(r *raw) {
			last := slices.Clone(r.records[len(r.records)-1])
			last[len(last)-1] ^= 1
			r.records[len(r.records)-1] = last
		}, true},
		"a hash of another length": {func(r *raw) {
			last := slices.Clone(r.records[len(r.records)-1])
			last[5] = 21
			r.records[len(r.records)-1] = last
		}, true},
		"a directory as a file": {func(r *raw) {
			last := slices.Clone(r.records[len(r.records)-1])
			last[0] = 'f'
			r.records[len(r.records)-1] = last
		}, true},
	} {
		parts := takeApart(t, plain)
		c.change(&parts)
		f, err := received(t, deflate(t, parts.bytes()))
		if err == nil {
			_, err = f.Check(t.Context())
		}
		if !c.fails {
			require.NoError(t, err, name)
			continue
		}
		prosetest.Error(t, err, name)
		var fault *bundle.FaultError
		require.ErrorAs(t, err, &fault, name)
	}
	// Version 1 has no files.
	_, err = verify(append([]byte("uwf bundle 1\n"), plain[13:]...))
	prosetest.Error(t, err)
}

// Decompression stops before implausibly large output fills the disk.
func TestBomb(t *testing.T) {
	t.Parallel()
	w, g, _ := withFiles(t)
	data, _, err := w.exportFiles(g)
	require.NoError(t, err)
	head := inflate(t, data)
	var out bytes.Buffer
	out.WriteString("uwf bundle 2\n")
	z, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	at := bytes.LastIndex(head, []byte{'e', 0, 0, 0, 40})
	_, err = z.Write(head[13:at])
	require.NoError(t, err)
	_, err = z.Write([]byte{'f', 0x0f, 0, 0, 0, 20})
	require.NoError(t, err)
	for range 240 {
		_, err = z.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	_, err = received(t, out.Bytes())
	prosetest.Error(t, err)
}

func inflate(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(data[13:]))
	require.NoError(t, err)
	defer z.Close()
	plain, err := io.ReadAll(z)
	require.NoError(t, err)
	return append(slices.Clone(data[:13]), plain...)
}

func deflate(t *testing.T, plain []byte) []byte {
	t.Helper()
	out := bytes.NewBuffer(slices.Clone(plain[:13]))
	z, err := zstd.NewWriter(out)
	require.NoError(t, err)
	_, err = z.Write(plain[13:])
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

func setTitle(t *testing.T, w *world, id, title string) {
	t.Helper()
	facts, err := w.index.Facts(t.Context(), id)
	require.NoError(t, err)
	facts.Title = &title
	require.NoError(t, w.index.SetFacts(t.Context(), id, facts))
}
