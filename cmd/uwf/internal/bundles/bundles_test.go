package bundles_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// nobody is a seal that belongs to nothing.
const nobody = "0000000000000000000000000000000000000000000000000000000000000001"

// refused is a command line and its expected error.
type refused struct {
	line   string
	code   protocol.Code
	status int
}

// refuse runs command lines that must print no result and change nothing in the home.
func refuse(t *testing.T, w *clitest.World, lines ...refused) {
	t.Helper()
	for _, c := range lines {
		before := threads(w)
		r := w.Fail(c.line)
		assert.Equal(t, c.code, r.Code, c.line)
		assert.Equal(t, c.status, r.Status, c.line)
		assert.Empty(t, r.Out, c.line)
		assert.Equal(t, before, threads(w), c.line)
		prosetest.Text(t, r.Err)
	}
}

// threads returns the files with the threads' heads.
func threads(w *clitest.World) string {
	text := ""
	for _, name := range []string{"threads.yaml", "history.jsonl", "registry.yaml"} {
		data, _ := os.ReadFile(filepath.Join(w.Home, name))
		text += string(data)
	}
	return text
}

// list returns a list of objects in a result.
func list(object map[string]any, key string) []map[string]any {
	var objects []map[string]any
	items, _ := object[key].([]any)
	for _, item := range items {
		objects = append(objects, item.(map[string]any))
	}
	return objects
}

// field returns one field of each object.
func field(objects []map[string]any, key string) []any {
	var values []any
	for _, o := range objects {
		values = append(values, o[key])
	}
	return values
}

func num(t *testing.T, object map[string]any, key string) int {
	t.Helper()
	n, err := object[key].(interface{ Int64() (int64, error) }).Int64()
	require.NoError(t, err)
	return int(n)
}

func TestExport(t *testing.T) {
	t.Parallel()
	w := clitest.New(t)
	w.Dir = t.TempDir()
	refuse(t, w, refused{"thread export --all -o x.uwfb", "not_found", 3})
	w.File("loop.yaml", clitest.Loop)
	w.Must("workflow put loop.yaml")
	refuse(t, w, refused{"thread export --all -o x.uwfb", "not_found", 3}) // there is no thread yet
	a := w.Thread("first")
	w.Step(a, 1, "One.")
	b := w.Thread("second")
	w.Must("thread kill " + b)

	one := w.Must("thread export " + a + " -o one.uwfb")
	assert.Equal(t, "one.uwfb", one["file"])
	assert.Equal(t, [3]int{1, 15, 0}, [3]int{num(t, one, "threads"), num(t, one, "nodes"), num(t, one, "tombstones")})
	assert.Len(t, w.Read("one.uwfb"), num(t, one, "bytes"))
	again := w.Run("thread export " + a + " -o -")
	assert.Equal(t, w.Read("one.uwfb"), again.Out, "equal threads give equal files")
	assert.Zero(t, again.Status)
	assert.NotContains(t, again.Err, "hint")
	both := w.Must("thread export --all -o both.uwfb")
	assert.Equal(t, 2, num(t, both, "threads"))
	named := w.Must("thread export " + b + " " + a + " -o named.uwfb")
	assert.Equal(t, 2, num(t, named, "threads"))
	text := w.Run("thread export " + a + " -o one.uwfb --format text")
	assert.Zero(t, text.Status)
	none := w.Run("thread export " + a + " -o files.uwfb --files")
	assert.Zero(t, none.Status)
	prosetest.Text(t, none.Err, "no files are kept")

	refuse(t, w,
		refused{"thread export -o x.uwfb", "usage", 2},
		refused{"thread export " + a + " --all -o x.uwfb", "usage", 2},
		refused{"thread export 01B -o x.uwfb", "not_found", 3},
		refused{"thread export " + a + " 01B -o x.uwfb", "not_found", 3},
		refused{"thread export " + a, "usage", 2},
		refused{"thread export " + a + " -o nowhere/x.uwfb", "not_found", 3},
		refused{"thread export " + a + " -o .", "usage", 2},
	)
	assert.NoFileExists(t, filepath.Join(w.Dir, "x.uwfb"))
}

func TestExportHTML(t *testing.T) {
	t.Parallel()
	w := clitest.New(t).WithProgram(webcall.Program)
	a := w.Thread("first")
	w.Step(a, 1, "One.")
	page := w.Must("thread export " + a + " --html -o run.html")
	assert.Equal(t, map[string]any{"file": "run.html", "thread": a}, page)
	assert.Contains(t, w.Read("run.html"), "One.")
	info, err := os.Stat(filepath.Join(w.Dir, "run.html"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	piped := w.Run("thread export " + a + " --html -o -")
	assert.Zero(t, piped.Status)
	assert.Contains(t, piped.Out, "One.")
	assert.True(t, strings.HasSuffix(strings.TrimSpace(piped.Out), "</html>"), "all of it is written")
	text := w.Run("thread export " + a + " --html -o run.html --format text")
	assert.Equal(t, "run.html  thread "+a+"\n", text.Out)
	refuse(t, w,
		refused{"thread export --html --all -o x.html", "usage", 2},
		refused{"thread export --html -o x.html", "usage", 2},
		refused{"thread export " + a + " " + a + " --html -o x.html", "usage", 2},
		refused{"thread export 01B --html -o x.html", "not_found", 3},
		refused{"thread export " + a + " --html -o nowhere/x.html", "not_found", 3},
		refused{"thread export " + a + " --html -o .", "usage", 2},
	)
	w.Environ = append(w.Environ, "PATH="+t.TempDir()) // without the program that writes pages
	r := w.Fail("thread export " + a + " --html -o x.html")
	assert.Equal(t, protocol.CodeNotFound, r.Code)
	prosetest.Text(t, r.Err)
	assert.NoFileExists(t, filepath.Join(w.Dir, "x.html"))
}

// Exported data is scanned for keys; at most five nodes are listed.
func TestKeys(t *testing.T) {
	t.Parallel()
	const key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	for _, keys := range []int{0, 1, 3, 6} {
		w := clitest.New(t).WithProgram(webcall.Program)
		a := w.Thread("first")
		w.Step(a, 0, "No key.")
		for i := range keys {
			w.Step(a, i, strings.Repeat("x", i)+" "+key)
		}
		bundled := max(0, 2*keys-1) // all but the last are also in the next prompt
		for line, found := range map[string]int{"thread export " + a + " -o x.uwfb": bundled, "thread export " + a + " --html -o x.html": keys} {
			r := w.Run(line)
			require.Zero(t, r.Status, r.Err)
			assert.NotContains(t, r.Err, key)
			assert.Equal(t, min(found, 5), strings.Count(r.Err, "  ghp_0123…\n"), "%d: %s", keys, r.Err)
			assert.Equal(t, keys > 0, strings.Contains(r.Err, "thread redact "+a+" --node "))
			assert.Equal(t, found > 5, strings.Contains(r.Err, fmt.Sprintf("\n  and %d more\n", found-5)), "%d: %s", keys, r.Err)
			if keys == 6 {
				prosetest.Text(t, r.Err, strings.Contains(line, "--html"))
			}
		}
	}
}

// world is a home with a thread of two steps, and a bundle of it.
func world(t *testing.T) (w *clitest.World, thread string, steps []protocol.Hash) {
	t.Helper()
	w = clitest.New(t).WithProgram(webcall.Program)
	thread = w.Thread("first")
	steps = []protocol.Hash{w.Step(thread, 1, "The secret is 1234, they say."), w.Step(thread, 2, "And so on.")}
	w.Must("thread export " + thread + " -o a.uwfb")
	return w, thread, steps
}

func TestVerify(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	head := string(steps[1])
	sealOf := w.Must("thread seal " + a)["seal"].(string)
	whole := w.Must("verify a.uwfb")
	assert.Equal(t, []map[string]any{{
		"thread": a, "head": head, "status": "active", "workflowName": "loop", "steps": list(whole, "threads")[0]["steps"], "seal": sealOf, "sealed": false,
	}}, list(whole, "threads"))
	assert.Equal(t, 2, num(t, list(whole, "threads")[0], "steps"))
	assert.Equal(t, []any{"loop"}, field(list(whole, "workflows"), "name"))
	assert.Len(t, w.Read("a.uwfb"), num(t, whole, "bytes"))
	assert.Empty(t, list(whole, "tombstones"))
	assert.Equal(t, whole, w.Must("verify a.uwfb --expect "+sealOf))
	w.Stdin = w.Read("a.uwfb")
	assert.Equal(t, whole, w.Must("verify -"))
	assert.Equal(t, whole, w.Other().Must("verify a.uwfb"), "it needs no home")
	text := w.Run("verify a.uwfb --format text")
	assert.Zero(t, text.Status)
	assert.Contains(t, text.Out, sealOf+" (computed)")
	w.Must("thread export " + a + " -o sealed.uwfb")
	assert.Equal(t, []any{true}, field(list(w.Must("verify sealed.uwfb"), "threads"), "sealed"))
	assert.NotContains(t, w.Run("verify sealed.uwfb --format text").Out, "(computed)")

	w.File("newer.uwfb", "uwf bundle 9\n{}\n")
	w.File("empty.uwfb", "")
	w.File("text.uwfb", "no bundle\n")
	refuse(t, w,
		refused{"verify a.uwfb --expect " + nobody, "corrupt", 7},
		refused{"verify a.uwfb --expect abc", "usage", 2},
		refused{"verify a.uwfb --expect " + strings.Repeat("0", 64), "usage", 2},
		refused{"verify newer.uwfb", "unsupported-version", 7},
		refused{"verify empty.uwfb", "corrupt", 7},
		refused{"verify text.uwfb", "corrupt", 7},
		refused{"verify nofile.uwfb", "not_found", 3},
		refused{"verify", "usage", 2},
	)
}

// A bundle of a single node has a seal as well.
func TestVerifyRoots(t *testing.T) {
	t.Parallel()
	w, _, steps := world(t)
	w.Must("cas export " + string(steps[0]) + " -o node.uwfb")
	r := w.Must("verify node.uwfb")
	roots := list(r, "roots")
	assert.Equal(t, []any{string(steps[0])}, field(roots, "hash"))
	assert.Equal(t, r, w.Must("verify node.uwfb --expect "+roots[0]["seal"].(string)))
	assert.Equal(t, 7, w.Run("verify node.uwfb --expect "+nobody).Status)
	assert.Contains(t, w.Run("verify node.uwfb --format text").Out, "node "+string(steps[0])+"  ")
}

// A bundle with any changed or missing byte fails verification, and nothing of it is imported.
func TestDamagedBundles(t *testing.T) {
	t.Parallel()
	w, _, _ := world(t)
	text := w.Read("a.uwfb")
	other := w.Other()
	for at := 0; at < len(text); at += 307 {
		flipped := []byte(text)
		flipped[at] ^= 0x10
		w.File("flipped.uwfb", string(flipped))
		w.File("short.uwfb", text[:at])
		for _, name := range []string{"flipped.uwfb", "short.uwfb"} {
			r := w.Fail("verify " + name)
			assert.Contains(t, []int{4, 7}, r.Status, "%s at %d: %s", name, at, r.Err)
			assert.Empty(t, r.Out)
			r = other.Fail("thread import " + name)
			assert.Contains(t, []protocol.Code{"corrupt", "invalid", "unsupported-version"}, r.Code, "%s at %d: %s", name, at, r.Err)
			assert.Empty(t, threads(other), "%s at %d", name, at)
		}
	}
	w.File("more.uwfb", text+"x")
	assert.Equal(t, 7, w.Run("verify more.uwfb").Status)
	w.File("twice.uwfb", text+text)
	assert.Equal(t, 7, w.Run("verify twice.uwfb").Status)
}

func TestImport(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	loop := w.Read("a.uwfb")
	w.Step(a, 3, "Third.")
	w.Must("thread export " + a + " -o three.uwfb")
	other := w.Other()
	type result struct{ thread, workflow string }
	for _, c := range []struct {
		name, line string
		want       result
		hints      []string
	}{
		{"new", "thread import a.uwfb", result{"added", "offered"}, []string{"uwf thread step " + a + " --cwd ", "--register a.uwfb"}},
		{"again", "thread import a.uwfb", result{"unchanged", "offered"}, []string{"--register a.uwfb"}},
		{"registered", "thread import a.uwfb --register", result{"unchanged", "added"}, nil},
		{"registered again", "thread import a.uwfb --register", result{"unchanged", "unchanged"}, nil},
		{"further", "thread import three.uwfb", result{"advanced", "unchanged"}, []string{"uwf thread step " + a + " --cwd "}},
		{"behind", "thread import a.uwfb", result{"ahead", "unchanged"}, nil},
		{"as new, though it is here", "thread import three.uwfb --as-new", result{"unchanged", "unchanged"}, nil},
		{"without files", "thread import three.uwfb --no-files", result{"unchanged", "unchanged"}, nil},
	} {
		r := other.Run(c.line)
		require.Zero(t, r.Status, "%s: %s", c.name, r.Err)
		got := w.JSON(r.Out)
		assert.Equal(t, []any{c.want.thread}, field(list(got, "threads"), "result"), c.name)
		assert.Equal(t, []any{c.want.workflow}, field(list(got, "workflows"), "result"), c.name)
		assert.Equal(t, len(c.hints), strings.Count(r.Err, "hint: "), "%s: %s", c.name, r.Err)
		for _, hint := range c.hints {
			assert.Contains(t, r.Err, hint, c.name)
		}
	}
	assert.Equal(t, w.Head(a), other.Head(a))
	foreign, err := os.ReadFile(filepath.Join(other.Home, "trusted.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(foreign), `"foreign"`), "its workflow is one of elsewhere: %s", foreign)
	unsure := other.Other()
	require.NoError(t, os.MkdirAll(filepath.Join(unsure.Home, "trusted.jsonl", "x"), 0o700))
	assert.NotZero(t, unsure.Run("thread import a.uwfb").Status, "nobody would know that its workflow came from elsewhere")
	third := other.Other()
	third.Stdin = loop
	assert.Equal(t, []any{"added"}, field(list(third.Must("thread import -"), "threads"), "result"))
	assert.Equal(t, steps[1], third.Head(a))
	assert.Zero(t, other.Run("cas fsck").Status)
	assert.Zero(t, third.Run("cas fsck").Status)
	prosetest.Text(t, third.Other().Run("thread import a.uwfb --format text").Out)
	refuse(t, third,
		refused{"thread import nofile.uwfb", "not_found", 3},
		refused{"thread import loop.yaml", "invalid", 4},
		refused{"thread import", "usage", 2},
	)
}

// A thread that has diverged here is rejected unless it gets a new ID.
func TestImportConflict(t *testing.T) {
	t.Parallel()
	w, a, _ := world(t)
	other := w.Other()
	other.Must("thread import a.uwfb")
	other.Step(a, 3, "Here.")
	w.Step(a, 3, "There.")
	w.Must("thread export " + a + " -o there.uwfb")
	refuse(t, other, refused{"thread import there.uwfb", "failed", 1})
	here := other.Head(a)
	r := other.Run("thread import there.uwfb --as-new")
	require.Zero(t, r.Status, r.Err)
	added := list(w.JSON(r.Out), "threads")
	require.Equal(t, []any{"renamed"}, field(added, "result"))
	id := added[0]["thread"].(string)
	assert.NotEqual(t, a, id)
	assert.Contains(t, r.Err, "uwf thread step "+id+" --cwd ")
	assert.Equal(t, here, other.Head(a))
	assert.Equal(t, w.Head(a), other.Head(id))
}

// A thread that has ended here stays ended.
func TestImportEnded(t *testing.T) {
	t.Parallel()
	w, a, _ := world(t)
	other := w.Other()
	other.Must("thread import a.uwfb")
	other.Must("thread kill " + a)
	w.Step(a, 3, "There.")
	w.Must("thread export " + a + " -o there.uwfb")
	r := other.Run("thread import there.uwfb")
	require.Zero(t, r.Status, r.Err)
	assert.Equal(t, []any{"ended"}, field(list(w.JSON(r.Out), "threads"), "result"))
	prosetest.Text(t, r.Err)
	assert.Equal(t, "cancelled", other.Must("thread show " + a)["status"])
}

// An ID in the future would remain the newest forever.
func TestImportFuture(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	other := w.Other()
	other.Clock = other.Clock.Add(-time.Hour)
	refuse(t, other, refused{"thread import a.uwfb", "invalid", 4})
	added := list(other.Must("thread import a.uwfb --as-new"), "threads")
	require.Equal(t, []any{"renamed"}, field(added, "result"))
	assert.Less(t, added[0]["thread"], a)
	assert.Equal(t, steps[1], other.Head(added[0]["thread"].(string)))
}

// A store with another hash function rejects the import.
func TestImportHash(t *testing.T) {
	t.Parallel()
	w, _, _ := world(t)
	other := w.Other()
	require.Zero(t, other.Run("cas init --hash xxh64").Status)
	refuse(t, other, refused{"thread import a.uwfb", "invalid", 4})
}

func TestSeal(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	first := w.Must("thread seal " + a)
	assert.Equal(t, a, first["thread"])
	assert.Equal(t, string(steps[1]), first["head"])
	assert.Equal(t, true, first["kept"])
	assert.Equal(t, 20, num(t, first, "newNodes"))
	assert.Len(t, first["seal"], 64)
	seal := first["seal"].(string)
	again := w.Must("thread seal " + a)
	assert.Equal(t, seal, again["seal"])
	assert.Zero(t, num(t, again, "newNodes"))
	expected := w.Must("thread seal " + a + " --expect " + seal)
	assert.Equal(t, map[string]any{"thread": a, "head": string(steps[1]), "seal": seal, "newNodes": again["newNodes"], "kept": false}, expected)
	assert.Equal(t, seal+"\n", w.Run("thread seal "+a+" --format text").Out)
	assert.Zero(t, w.Run("thread seal "+a+" --expect "+strings.ToUpper(seal)).Status)
	refuse(t, w,
		refused{"thread seal " + a + " --expect " + nobody, "corrupt", 7},
		refused{"thread seal " + a + " --expect abc", "usage", 2},
		refused{"thread seal " + a + " --expect " + strings.Repeat("0", 64), "usage", 2},
		refused{"thread seal 01B", "not_found", 3},
		refused{"thread seal", "usage", 2},
	)
	w.Step(a, 3, "Third.")
	further := w.Must("thread seal " + a)
	assert.NotEqual(t, seal, further["seal"])
	assert.Equal(t, 5, num(t, further, "newNodes"))
	assert.Equal(t, 7, w.Run("thread seal "+a+" --expect "+seal).Status)
}

// Stored seals are not trusted: a replaced node is detected.
func TestSealOfDamage(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	seal := w.Must("thread seal " + a)["seal"].(string)
	step := clitest.Payload[protocol.Step](w, steps[0])
	detail := clitest.Payload[protocol.Detail](w, step.Detail)
	damage(t, w, string(detail.Turns[0]), "1234", "1235")
	refuse(t, w, refused{"thread seal " + a + " --expect " + seal, "corrupt", 7})
}

// damage replaces a text in the record of a node.
func damage(t *testing.T, w *clitest.World, node, before, after string) {
	t.Helper()
	r := castest.FindRecord(t, filepath.Join(w.Home, "cas"), cas.Hash(node))
	at := bytes.Index(r.Body(), []byte(before))
	require.GreaterOrEqual(t, at, 0)
	r.Overwrite(at, []byte(after))
}
