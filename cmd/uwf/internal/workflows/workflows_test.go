package workflows_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// world is a home with the workflow loop, and its file.
func world(t *testing.T) (w *clitest.World, hash string) {
	t.Helper()
	w = clitest.New(t)
	w.File("loop.yaml", clitest.Loop)
	return w, w.Must("workflow put loop.yaml")["hash"].(string)
}

// objects returns a list printed by a command.
func objects(t *testing.T, r clitest.Result) []map[string]any {
	t.Helper()
	require.Zero(t, r.Status, r.Err)
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.Out), &list), r.Out)
	return list
}

func TestPutAndList(t *testing.T) {
	t.Parallel()
	w, hash := world(t)
	assert.Equal(t, map[string]any{"name": "loop", "hash": hash}, w.Must("workflow put loop.yaml"))
	list := objects(t, w.Run("workflow list"))
	require.Len(t, list, 1)
	assert.Equal(t, [3]any{"loop", hash, "global"}, [3]any{list[0]["name"], list[0]["hash"], list[0]["origin"]})
	w.File("loop.yaml", strings.Replace(clitest.Loop, "Again.", "Once more.", 1))
	other := w.Must("workflow put loop.yaml")["hash"]
	assert.NotEqual(t, hash, other)
	assert.Equal(t, other, objects(t, w.Run("workflow list"))[0]["hash"])
	assert.Equal(t, "loop  "+other.(string)+"\n", w.Run("workflow put loop.yaml --format text").Out)
	prosetest.Text(t, w.Run("workflow list --format text").Out)
	require.NoError(t, os.MkdirAll(filepath.Join(w.Dir, ".workflows"), 0o700))
	w.File(filepath.Join(".workflows", "own.yaml"), strings.Replace(clitest.Loop, "name: loop", "name: own", 1))
	prosetest.Text(t, w.Run("workflow list --format text").Out)
	w.File("bad.yaml", "name: bad\n")
	w.File("twice.yaml", "name: x\nname: y\n")
	refuse(t, w,
		refused{"workflow put nowhere.yaml", "not_found", 3},
		refused{"workflow put bad.yaml", "invalid", 4},
		refused{"workflow put twice.yaml", "invalid", 4},
		refused{"workflow put", "usage", 2},
	)
	assert.Len(t, objects(t, w.Run("workflow list")), 2)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	w, hash := world(t)
	assert.Equal(t, map[string]any{"name": "loop", "hash": hash, "removed": true}, w.Must("workflow rm loop"))
	assert.Empty(t, objects(t, w.Run("workflow list")))
	prosetest.Text(t, w.Run("workflow list --format text").Out)
	refuse(t, w, refused{"workflow rm loop", "not_found", 3}, refused{"workflow rm loop --yes", "not_found", 3}, refused{"workflow rm", "usage", 2})
	assert.Equal(t, hash, w.Must("workflow show " + hash)["hash"], "it stays in the store")
	w.Must("workflow put loop.yaml")
	assert.Equal(t, "loop  "+hash+"  removed\n", w.Run("workflow rm loop --yes --format text").Out)
}

func TestShow(t *testing.T) {
	t.Parallel()
	w, hash := world(t)
	got := w.Must("workflow show loop")
	assert.Equal(t, [2]any{hash, "loop"}, [2]any{got["hash"], got["name"]})
	assert.Equal(t, "Works.", got["payload"].(map[string]any)["description"])
	assert.Equal(t, got, w.Must("workflow show "+hash))
	assert.Equal(t, got, w.Must("workflow show "+hash[:8]))
	// The output can be stored again with the same result.
	for _, format := range []string{"yaml", "text"} {
		r := w.Run("workflow show loop --format " + format)
		require.Zero(t, r.Status, r.Err)
		assert.Equal(t, format == "text", strings.HasPrefix(r.Out, "# workflow "+hash+", registered as loop\n"))
		w.File("loop.yaml", r.Out)
		assert.Equal(t, hash, w.Must("workflow put loop.yaml")["hash"], format)
	}
	w.Must("workflow rm loop")
	got = w.Must("workflow show " + hash)
	assert.Nil(t, got["name"])
	assert.True(t, strings.HasPrefix(w.Run("workflow show --format text "+hash).Out, "# workflow "+hash+"\n"))
	refuse(t, w,
		refused{"workflow show lop", "not_found", 3},
		refused{"workflow show 0000000000000", "not_found", 3},
		refused{"workflow show --format svg " + hash, "", 2},
		refused{"workflow show", "usage", 2},
	)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	w.File("lop.yaml", strings.Replace(clitest.Loop, "role: $END", "role: wroker", 1))
	w.File("two.yaml", "name: two\n")
	for _, c := range []struct {
		files string
		bad   []string // files with problems
	}{
		{"loop.yaml", nil}, {"loop.yaml loop.yaml", nil}, {"lop.yaml", []string{"lop.yaml"}}, {"loop.yaml lop.yaml", []string{"lop.yaml"}},
		{"lop.yaml two.yaml loop.yaml", []string{"lop.yaml", "two.yaml"}},
	} {
		r := w.Run("workflow validate " + c.files)
		got := w.JSON(r.Out)
		assert.Equal(t, c.bad == nil, got["valid"], c.files)
		assert.Equal(t, map[bool]int{true: 0, false: 4}[c.bad == nil], r.Status, c.files)
		files := []string{}
		problems, _ := got["problems"].([]any)
		for _, p := range problems {
			if file := p.(map[string]any)["file"].(string); len(files) == 0 || files[len(files)-1] != file {
				files = append(files, file)
			}
		}
		assert.ElementsMatch(t, c.bad, files, c.files)
		assert.Len(t, got["errors"], len(problems), c.files)
		text := w.Run("workflow validate --format text " + c.files)
		assert.Equal(t, r.Status, text.Status, c.files)
		prosetest.Text(t, text.Out+"--\n"+text.Err, c.files)
		github := w.Run("workflow validate --format github " + c.files)
		assert.Equal(t, r.Status, github.Status, c.files)
		assert.Equal(t, len(problems), strings.Count(github.Out, "::error file="), c.files)
		prosetest.Text(t, github.Out+"--\n"+github.Err, c.files+" for GitHub")
	}
	refuse(t, w,
		refused{"workflow validate nowhere.yaml", "not_found", 3},
		refused{"workflow validate loop.yaml nowhere.yaml", "not_found", 3},
		refused{"workflow validate --format dot loop.yaml", "", 2},
		refused{"workflow validate", "usage", 2},
	)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	w, hash := world(t)
	same := w.Must("workflow diff loop ./loop.yaml")
	assert.Equal(t, true, same["equal"])
	assert.Empty(t, same["changes"])
	assert.Empty(t, w.Run("workflow diff loop "+hash+" --format text").Out)
	w.File("loop.yaml", strings.Replace(clitest.Loop, "Again.", "Once more.", 1))
	r := w.Run("workflow diff loop ./loop.yaml")
	assert.Equal(t, 1, r.Status)
	assert.Equal(t, false, w.JSON(r.Out)["equal"])
	assert.Len(t, w.JSON(r.Out)["changes"], 1)
	text := w.Run("workflow diff loop ./loop.yaml --format text")
	assert.Equal(t, 1, text.Status)
	prosetest.Text(t, text.Out)
	refuse(t, w,
		refused{"workflow diff loop lop", "not_found", 3},
		refused{"workflow diff lop loop", "not_found", 3},
		refused{"workflow diff loop", "usage", 2},
	)
}

func TestGraph(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	for format, begin := range map[string]string{"mermaid": "---\ntitle:", "dot": "digraph", "json": "{", "yaml": ""} {
		r := w.Run("workflow graph loop --format " + format)
		require.Zero(t, r.Status, r.Err)
		assert.True(t, strings.HasPrefix(r.Out, begin), "%s: %.40s", format, r.Out)
		assert.Contains(t, r.Out, "worker", format)
	}
	assert.Equal(t, w.Run("workflow graph loop").Out, w.Run("workflow graph ./loop.yaml --format text").Out)
	prosetest.Text(t, w.Run("workflow graph loop").Out)
	refuse(t, w, refused{"workflow graph lop", "not_found", 3}, refused{"workflow graph --format png loop", "", 2}, refused{"workflow graph", "usage", 2})
}

func TestNew(t *testing.T) {
	t.Parallel()
	w := clitest.New(t)
	got := w.Must("workflow new mine")
	assert.Equal(t, map[string]any{"name": "mine", "template": got["template"], "path": "mine.yaml"}, got)
	text := w.Read("mine.yaml")
	assert.Equal(t, text, w.Run("workflow new mine -o -").Out)
	assert.Equal(t, text, w.Run("workflow new mine.yaml -o -").Out)
	assert.Equal(t, "mine", w.Must("workflow put mine.yaml")["name"])
	require.NoError(t, os.Mkdir(filepath.Join(w.Dir, "sub"), 0o700))
	assert.Equal(t, "sub/mine.yaml", w.Must("workflow new mine -o sub")["path"])
	assert.Equal(t, text, w.Read("sub/mine.yaml"))
	assert.Zero(t, w.Run("workflow new other -o sub/other.yaml --format text").Status)
	w.File("full.yaml", "mine")
	refuse(t, w,
		refused{"workflow new mine", "invalid", 4},
		refused{"workflow new full", "invalid", 4},
		refused{"workflow new x -o nowhere/x.yaml", "not_found", 3},
		refused{"workflow new x --template hallo", "not_found", 3},
		refused{"workflow new dir/x", "usage", 2},
		refused{"workflow new x_Y!", "usage", 2},
		refused{"workflow new x_Y! -o -", "usage", 2},
		refused{"workflow new x -o y.yaml", "usage", 2},
		refused{"workflow new", "usage", 2},
	)
	assert.Equal(t, "mine", w.Read("full.yaml"))
	assert.NoFileExists(t, filepath.Join(w.Dir, "x.yaml"))
}

func TestTrust(t *testing.T) {
	t.Parallel()
	w, hash := world(t)
	none := w.Must("workflow trust loop --yes")
	assert.Equal(t, map[string]any{"name": "loop", "hash": hash, "commands": []any{}}, none)
	w.File("lint.yaml", "name: lint\ndescription: Checks.\nroles:\n  check: {description: Checks., run: [make, check]}\n"+
		"graph:\n  $START: {_: {role: check}}\n  check: {passed: {role: $END}, failed: {role: $END}}\n")
	lint := w.Must("workflow put lint.yaml")["hash"]
	got := w.Must("workflow trust lint --yes")
	assert.Equal(t, [2]any{"lint", lint}, [2]any{got["name"], got["hash"]})
	assert.Len(t, got["commands"], 1)
	prosetest.Text(t, w.Run("workflow trust lint --yes --format text").Out)
	// In a home to which it came with a thread, the user must confirm it.
	w.Must("thread export " + w.Must("thread start lint -p x")["thread"].(string) + " -o lint.uwfb")
	other := w.Other()
	other.Must("thread import lint.uwfb")
	record := func() int {
		text, err := os.ReadFile(filepath.Join(other.Home, "trusted.jsonl"))
		require.NoError(t, err)
		return strings.Count(string(text), lint.(string))
	}
	before := record()
	r := other.Run("workflow trust", lint.(string)) // without a terminal there is no question
	assert.NotZero(t, r.Status)
	assert.Equal(t, before, record())
	prosetest.Text(t, r.Err)
	other.Must("workflow trust --yes", lint.(string))
	assert.Greater(t, record(), before)
	refuse(t, w, refused{"workflow trust lop --yes", "not_found", 3}, refused{"workflow trust", "usage", 2})
}

func TestImport(t *testing.T) {
	t.Parallel()
	w := clitest.New(t)
	agents := filepath.Join(".claude", "agents")
	require.NoError(t, os.MkdirAll(filepath.Join(w.Dir, agents), 0o700))
	agent := func(name string) string {
		return "---\nname: " + name + "\ndescription: Does " + name + ".\ntools: Read, Bash\nmodel: opus\n---\nYou do " + name + ".\n"
	}
	w.File(filepath.Join(agents, "plan.md"), agent("plan"))
	w.File(filepath.Join(agents, "code.md"), agent("code"))
	w.File(filepath.Join(agents, "notes.md"), "Some notes.\n")
	w.File(filepath.Join(agents, "code.txt"), agent("text"))
	for dir, name := range map[string]string{".hidden": "hidden", "node_modules": "module", "team": "review"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.Dir, agents, dir), 0o700))
		w.File(filepath.Join(agents, dir, "x.md"), agent(name))
	}
	r := w.Run("workflow import .")
	require.Zero(t, r.Status, r.Err)
	got := w.JSON(r.Out)
	assert.Equal(t, [2]any{"agents", "agents.yaml"}, [2]any{got["name"], got["path"]})
	var names []any
	for _, role := range got["roles"].([]any) {
		names = append(names, role.(map[string]any)["name"])
	}
	assert.ElementsMatch(t, []any{"plan", "code", "review"}, names)
	prosetest.Text(t, r.Err)
	assert.Equal(t, "agents", w.Must("workflow put agents.yaml")["name"])
	assert.Contains(t, w.Run("workflow import . -o -").Out, "You do plan.")
	one := w.Must("workflow import .claude/agents/plan.md -o one.yaml")
	assert.Len(t, one["roles"], 1)
	assert.Zero(t, w.Run("workflow import . -o two.yaml --format text").Status)
	refuse(t, w,
		refused{"workflow import .", "invalid", 4},
		refused{"workflow import nowhere -o x.yaml", "not_found", 3},
		refused{"workflow import .claude/agents/notes.md -o x.yaml", "invalid", 4},
		refused{"workflow import .claude/agents/.hidden/none -o x.yaml", "not_found", 3},
		refused{"workflow import", "usage", 2},
	)
	assert.NoFileExists(t, filepath.Join(w.Dir, "x.yaml"))
}

// A result that cannot be printed is an error, whichever part fails.
func TestUnprinted(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	for _, line := range []string{"workflow put loop.yaml", "workflow list", "workflow show loop", "workflow graph loop", "workflow trust loop --yes", "workflow validate loop.yaml", "workflow new x -o -"} {
		w.Unprinted(line)
	}
}

// What each command needs of a home; missing nodes are never ignored.
func TestSpoilt(t *testing.T) {
	t.Parallel()
	w, _ := world(t)
	for _, line := range []string{"workflow put loop.yaml", "workflow list", "workflow show loop", "workflow rm loop", "workflow trust loop --yes"} {
		prosetest.Text(t, w.Spoilt(line), line)
	}
	w.Lossy("workflow show loop", "workflow show loop --format yaml", "workflow graph loop", "workflow diff loop ./loop.yaml", "workflow trust loop --yes")
}
