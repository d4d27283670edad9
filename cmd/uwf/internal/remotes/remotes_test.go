package remotes_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// refused is a command line and its expected error.
type refused struct {
	line   string
	code   protocol.Code
	status int
}

// refuse runs command lines that must print no result.
func refuse(t *testing.T, w *clitest.World, lines ...refused) {
	t.Helper()
	for _, c := range lines {
		r := w.Fail(c.line)
		assert.Equal(t, c.code, r.Code, "%s: %s", c.line, r.Err)
		assert.Equal(t, c.status, r.Status, c.line)
		assert.Empty(t, r.Out, c.line)
		prosetest.Text(t, r.Err)
	}
}

// listed returns the remotes of a home.
func listed(t *testing.T, w *clitest.World) []map[string]any {
	t.Helper()
	r := w.Run("remote list")
	require.Zero(t, r.Status, r.Err)
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.Out), &all))
	return all
}

func TestNamed(t *testing.T) {
	t.Parallel()
	w := clitest.New(t)
	refuse(t, w, refused{"remote list", "not_found", 3}) // there is no home yet
	w.Must("remote add team there")
	w.Must("remote remove team")
	r := w.Run("remote list")
	assert.Equal(t, "[]\n", r.Out)
	prosetest.Text(t, r.Err)
	prosetest.Text(t, w.Run("remote list --format text").Out)

	team := map[string]any{"name": "team", "address": filepath.Join(w.Dir, "there")}
	assert.Equal(t, team, w.Must("remote add team there"))
	far := map[string]any{"name": "far", "address": "build@ci.example:threads", "trust": true}
	assert.Equal(t, far, w.Must("remote add far build@ci.example:threads --trust"))
	assert.Equal(t, []map[string]any{far, team}, listed(t, w))
	prosetest.Text(t, w.Run("remote list --format text").Out)
	assert.NoDirExists(t, filepath.Join(w.Dir, "there"), "nothing is contacted")
	refuse(t, w,
		refused{"remote add team elsewhere", "usage", 2},
		refused{"remote add -x elsewhere", "usage", 2},
		refused{"remote add a/b elsewhere", "usage", 2},
		refused{"remote add " + strings.Repeat("a", 65) + " elsewhere", "usage", 2},
		refused{"remote add new https://me:secret@example/x", "usage", 2},
		refused{"remote add new", "usage", 2},
		refused{"remote rename team far", "usage", 2},
		refused{"remote rename team a/b", "usage", 2},
		refused{"remote rename nobody else", "not_found", 3},
		refused{"remote rename taem else", "not_found", 3},
		refused{"remote remove nobody", "not_found", 3},
		refused{"remote remove there", "not_found", 3},
		refused{"remote remove /there", "not_found", 3},
		refused{"remote list --all", "usage", 2},
		refused{"remote list --waiting", "usage", 2},
		refused{"remote list nobody", "not_found", 3},
	)
	assert.Equal(t, []map[string]any{far, team}, listed(t, w), "nothing was changed")
	w.Must("remote add " + strings.Repeat("a", 64) + " elsewhere")
	w.Must("remote remove " + strings.Repeat("a", 64))

	team["name"] = "all"
	assert.Equal(t, team, w.Must("remote rename team all"))
	assert.Equal(t, []map[string]any{team, far}, listed(t, w), "sorted by name")
	assert.Equal(t, far, w.Must("remote remove far"))
	assert.Equal(t, []map[string]any{team}, listed(t, w))
	assert.Equal(t, "all2  "+team["address"].(string)+"\n", w.Run("remote rename all all2 --format text").Out)
}

// Entries written to the list by another program are not trusted.
func TestDamagedList(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no mapping": "- team\n", "no YAML": "team: [", "no address": "team: {trust: true}\n", "no name": "'a/b': {address: /x}\n", "no entry": "team: /x\n",
	} {
		w := clitest.New(t)
		require.NoError(t, os.MkdirAll(w.Home, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(w.Home, "remotes.yaml"), []byte(text), 0o600))
		for _, line := range []string{"remote list", "remote add x /x", "remote rename team x", "remote remove team", "pull x team", "fetch team"} {
			r := w.Fail(line)
			assert.Equal(t, [2]any{protocol.CodeInvalid, 4}, [2]any{r.Code, r.Status}, "%s: %s: %s", name, line, r.Err)
			assert.Empty(t, r.Out, "%s: %s", name, line)
		}
		prosetest.Text(t, w.Run("remote list").Err, name)
	}
}

// team is two homes and a remote between them, with the helper on PATH.
func team(t *testing.T) (here, there *clitest.World) {
	t.Helper()
	here = clitest.New(t)
	here.Clock = time.Now().Add(-time.Hour) // the helper uses the machine's clock
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, program)))
	here.Environ = append(here.Environ, "PATH="+bin)
	there = here.Other()
	for _, w := range []*clitest.World{here, there} {
		w.Must("remote add team", filepath.Join(here.Dir, "remote"))
	}
	return here, there
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

// one returns the only thread of a result.
func one(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	threads := list(object, "threads")
	require.Len(t, threads, 1)
	return threads[0]
}

func n(value int) json.Number {
	text, _ := json.Marshal(value)
	return json.Number(text)
}

func TestPushAndPull(t *testing.T) {
	t.Parallel()
	here, there := team(t)
	a := here.Thread("first")
	first := string(here.Step(a, 1, "One."))

	got := here.Must("push " + a + " team")
	assert.Equal(t, "team", got["remote"])
	assert.Equal(t, map[string]any{"thread": a, "head": first, "result": "added", "nodes": n(15)}, one(t, got))
	assert.Equal(t, map[string]any{"thread": a, "head": first, "result": "unchanged", "nodes": n(0)}, one(t, here.Must("push "+a)), "the only remote needs no name")
	assert.Equal(t, map[string]any{"thread": a, "head": first, "result": "unchanged", "nodes": n(0)}, one(t, here.Must("push "+a+" --check "+filepath.Join(here.Dir, "remote"))))

	r := there.Run("pull " + a[len(a)-6:] + " team")
	require.Zero(t, r.Status, r.Err)
	assert.Contains(t, r.Err, "hint: to continue it here, choose its directory: uwf thread step "+a+" --remote team --cwd "+there.Dir)
	pulled := there.JSON(r.Out)
	assert.Equal(t, [2]any{"team", n(8)}, [2]any{pulled["remote"], pulled["nodes"]})
	assert.Equal(t, map[string]any{"thread": a, "head": first, "result": "added"}, one(t, pulled))
	assert.Equal(t, "unchanged", one(t, there.Must("pull "+a))["result"])
	assert.Zero(t, there.Run("cas fsck").Status)

	// It continues there, and comes back.
	second := string(there.Step(a, 2, "Two."))
	r = there.Run("pull " + a + " team")
	assert.Equal(t, "ahead", one(t, there.JSON(r.Out))["result"])
	assert.Contains(t, r.Err, "hint: uwf push "+a+" team")
	pushed := one(t, there.Must("push "+a))
	assert.Equal(t, [2]any{"advanced", second}, [2]any{pushed["result"], pushed["head"]})
	r = here.Run("push " + a)
	assert.Equal(t, map[string]any{"thread": a, "head": first, "result": "behind", "there": second, "nodes": n(0)}, one(t, here.JSON(r.Out)))
	assert.Contains(t, r.Err, "hint: thread "+a+" has new steps on team: uwf pull "+a+" team")
	fetched := here.Must("fetch")
	assert.Equal(t, map[string]any{"thread": a, "head": second, "result": "advanced"}, one(t, fetched))
	assert.Equal(t, second, string(here.Head(a)))
	assert.Equal(t, "unchanged", one(t, here.Must("fetch team"))["result"])

	prosetest.Text(t, here.Run("push "+a+" --format text").Out, "push")
	prosetest.Text(t, here.Run("pull "+a+" --format text").Out, "pull")
	threads := here.Run("remote list team")
	assert.Zero(t, threads.Status)
	assert.Contains(t, threads.Out, a)
}

// A thread that has diverged stays unchanged on both sides unless the local steps are discarded.
func TestDiverged(t *testing.T) {
	t.Parallel()
	here, there := team(t)
	a := here.Thread("first")
	here.Must("push " + a)
	there.Must("pull " + a)
	mine, theirs := string(here.Step(a, 1, "Here.")), string(there.Step(a, 2, "There."))
	there.Must("push " + a)
	for _, line := range []string{"push " + a, "push --all"} {
		r := here.Fail(line)
		assert.Equal(t, [2]any{protocol.Code("diverged"), 1}, [2]any{r.Code, r.Status}, line)
		pushed := one(t, here.JSON(r.Out))
		assert.Equal(t, "diverged", pushed["result"], line)
		assert.Equal(t, "diverged", pushed["error"].(map[string]any)["code"], line)
		assert.Contains(t, r.Err, mine)
		assert.Contains(t, r.Err, theirs)
		prosetest.Text(t, here.Run(line+" --format text").Out, line[:6])
	}
	for _, line := range []string{"pull " + a, "fetch"} {
		r := here.Fail(line)
		assert.Equal(t, [2]any{protocol.Code("diverged"), 1}, [2]any{r.Code, r.Status}, line)
		assert.Equal(t, mine, string(here.Head(a)), line)
	}
	r := here.Run("pull " + a + " --discard")
	require.Zero(t, r.Status, r.Err)
	replaced := one(t, here.JSON(r.Out))
	assert.Equal(t, [3]any{"replaced", theirs, mine}, [3]any{replaced["result"], replaced["head"], replaced["was"]})
	assert.Contains(t, r.Err, "uwf thread fork "+mine)
	assert.Equal(t, theirs, string(here.Head(a)))
}

// fetch updates the threads that exist on both sides, and with --all gets the others as well.
func TestFetch(t *testing.T) {
	t.Parallel()
	here, there := team(t)
	a, b := here.Thread("first"), here.Thread("second")
	pushed := list(here.Must("push --all"), "threads")
	assert.Len(t, pushed, 2)
	there.Must("pull " + a)
	here.Step(a, 1, "One.")
	here.Must("push " + a)
	got := list(there.Must("fetch team"), "threads")
	require.Len(t, got, 1)
	assert.Equal(t, [2]any{a, "advanced"}, [2]any{got[0]["thread"], got[0]["result"]})
	results := map[any]any{}
	for _, thread := range list(there.Must("fetch --all"), "threads") {
		results[thread["thread"]] = thread["result"]
	}
	assert.Equal(t, map[any]any{a: "unchanged", b: "added"}, results)
	alone := here.Other()
	none := alone.Must("fetch", here.Dir+"/remote")
	assert.Empty(t, none["threads"])
	prosetest.Text(t, alone.Run("fetch --format text", here.Dir+"/remote").Out)
}

// A node redacted here is complete at the remote.
func TestPushRedacted(t *testing.T) {
	t.Parallel()
	here, _ := team(t)
	a := here.Thread("first")
	first := here.Step(a, 1, "The secret.")
	here.Step(a, 2, "More.")
	here.Must("push " + a)
	turn := clitest.Payload[protocol.Detail](here, clitest.Payload[protocol.Step](here, first).Detail).Turns[0]
	here.Must("thread redact " + a + " --node " + string(turn))
	assert.Nil(t, one(t, here.Must("push "+a))["whole"], "below what is there already nothing is looked at")
	r := here.Run("push " + a + " --check")
	require.Zero(t, r.Status, r.Err)
	assert.Equal(t, []any{string(turn)}, one(t, here.JSON(r.Out))["whole"])
	prosetest.Text(t, r.Err)
}

func TestRefused(t *testing.T) {
	t.Parallel()
	here, _ := team(t)
	a := here.Thread("first")
	here.Must("push " + a)
	none := clitest.New(t)
	refuse(t, none, refused{"fetch", "not_found", 3}, refused{"pull x", "not_found", 3}, refused{"push --all", "not_found", 3})
	refuse(t, here, refused{"pull team", "usage", 2}) // the first remote
	assert.Len(t, here.Must("push " + a + " " + here.Thread("second"))["threads"], 2, "the only remote needs no name")
	here.Must("remote add other /nowhere/at/all")
	refuse(t, here,
		refused{"push", "usage", 2},
		refused{"push team", "usage", 2},
		refused{"push 01B", "not_found", 3},
		refused{"push --all " + a + " team", "usage", 2},
		refused{"push " + a, "usage", 2},
		refused{"push " + a + " taem", "not_found", 3},
		refused{"push 01B team", "not_found", 3},
		refused{"push " + a + " me:secret@host:x", "usage", 2},
		refused{"pull", "usage", 2},
		refused{"pull team", "usage", 2},
		refused{"pull ./remote", "usage", 2},
		refused{"pull " + a + " taem", "not_found", 3},
		refused{"pull 01B team", "not_found", 3},
		refused{"pull ZZZZZZ team", "not_found", 3},
		refused{"fetch taem", "not_found", 3},
		refused{"fetch strange://x", "not_found", 3},
	)
}

// A damaged node at the remote is reported, and nothing of the thread is pulled.
func TestDamagedRemote(t *testing.T) {
	t.Parallel()
	here, there := team(t)
	a := here.Thread("first")
	here.Step(a, 1, "The answer is one.")
	here.Must("push " + a)
	found := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(here.Dir, "remote"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "The answer is one.") {
			found++
			require.NoError(t, os.Chmod(path, 0o600))
			require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(data), "is one", "is two")), 0o600))
		}
		return err
	}))
	require.Positive(t, found)
	for _, line := range []string{"pull " + a + " team", "fetch --all team"} {
		r := there.Fail(line)
		assert.Equal(t, [2]any{protocol.CodeCorrupt, 7}, [2]any{r.Code, r.Status}, r.Err)
		assert.Empty(t, r.Out)
		assert.NotZero(t, there.Run("thread show "+a).Status)
	}
	sent := one(t, here.Must("push "+a+" --check"))
	assert.NotEqual(t, n(0), sent["nodes"], "what is damaged there is sent again")
	assert.Equal(t, "added", one(t, there.Must("pull "+a))["result"])
}

// A result that cannot be printed is an error, whichever part fails.
func TestUnprinted(t *testing.T) {
	t.Parallel()
	here, _ := team(t)
	here.Unprinted("remote list")
	a := here.Thread("first")
	here.Must("push " + a)
	for _, line := range []string{"push " + a, "pull " + a, "fetch", "remote list team"} {
		here.Unprinted(line)
	}
	here.Must("remote remove team")
	here.Unprinted("remote list")
}
