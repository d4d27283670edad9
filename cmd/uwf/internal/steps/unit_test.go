package steps

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

func TestAgentName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag, alias string
		command     []string
		want        string
	}{
		{"", "", nil, "uwf-exec"},
		{"mine", "fast", []string{"./x.sh"}, "uwf-mine"},
		{"uwf-mine", "", nil, "uwf-mine"},
		{"", "fast", []string{"./x.sh"}, "uwf-fast"},
		{"", "dir/fast", nil, "uwf-fast"},
		{"", "", []string{"./greet.sh"}, "uwf-greet"},
		{"", "", []string{"sh", "greet.sh"}, "uwf-greet"},
		{"", "", []string{"/usr/bin/python3", "dir/greet.py", "-v"}, "uwf-greet"},
		{"", "", []string{"python3.exe", "greet.py"}, "uwf-greet"},
		{"", "", []string{"sh", "-c", "greet"}, "uwf-sh"},
		{"", "", []string{"sh"}, "uwf-sh"},
		{"", "", []string{"sh", ".sh"}, "uwf-sh"},
		{"", "", []string{".sh"}, "uwf-exec"},
		{"", "", []string{"greet", "other.sh"}, "uwf-greet"},
		{"", "", []string{"uwf-greet"}, "uwf-greet"},
	} {
		assert.Equal(t, c.want, agentName(c.flag, c.alias, c.command), c)
	}
}

func TestFileChanges(t *testing.T) {
	t.Parallel()
	list := []snapshot.Change{
		{Path: "new", Status: 'A', Added: 3}, {Path: "old", Status: 'D', Removed: 2}, {Path: "both\xff\x1b", Status: 'M', Added: 1, Removed: 4},
		{Path: "mode", Status: 'T'}, {Path: "picture", Status: 'A', Added: -1, Removed: -1},
	}
	n := func(i int) *int { return &i }
	assert.Equal(t, []FileChange{
		{"new", "added", n(3), n(0)}, {"old", "removed", n(0), n(2)}, {"both\uFFFD\x1b", "changed", n(1), n(4)}, {"mode", "changed", n(0), n(0)},
		{"picture", "added", nil, nil},
	}, FileChanges(list))
	assert.Equal(t, []FileChange{}, FileChanges(nil))
	assert.Equal(t, "A +3 -0        new\nD +0 -2        old\n", statText(list[:2]))
	assert.Equal(t, "A binary       picture\n", statText(list[4:]))
	assert.NotContains(t, statText(list), "\x1b")
}

func TestNameArgs(t *testing.T) {
	t.Parallel()
	call := func(fields map[string]any) any {
		return []any{map[string]any{"toolCalls": []any{fields}}, map[string]any{"content": "x"}, "redacted"}
	}
	for _, c := range []struct{ before, after map[string]any }{
		{map[string]any{"name": "run", "input": 1}, map[string]any{"name": "run", "args": 1}},
		{map[string]any{"input": nil}, map[string]any{"args": nil}},
		{map[string]any{"args": 1, "input": 2}, map[string]any{"args": 1, "input": 2}},
		{map[string]any{"args": 1}, map[string]any{"args": 1}},
		{map[string]any{"name": "run"}, map[string]any{"name": "run"}},
	} {
		turns := call(c.before)
		nameArgs(turns)
		assert.Equal(t, call(c.after), turns)
	}
	nameArgs(nil)
	nameArgs("x")
}

func TestStrictJSON(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		`{"turns":1}`: true, ` {"turns":1} `: true, `{"turn":1}`: false, `{"turns":1}{}`: false, `{"turns":1,"turns":1}`: false, ``: false, `[]`: false, `{"turns":"1"}`: false,
	} {
		var u protocol.Usage
		assert.Equal(t, good, strictJSON([]byte(text), &u) == nil, text)
	}
}

// A page begins after the offset and ends after limit turns; turns of other roles don't count.
func TestWants(t *testing.T) {
	t.Parallel()
	assert.True(t, (&turnPrinter{}).wants("a"))
	assert.True(t, (&turnPrinter{role: "a"}).wants("a"))
	assert.False(t, (&turnPrinter{role: "a"}).wants("b"))
	var out bytes.Buffer
	require.NoError(t, (&turnPrinter{w: &out, json: true}).text("%s", "x"))
	assert.Empty(t, out.String())
	require.NoError(t, (&turnPrinter{w: &out}).text("%s", "x"))
	assert.Equal(t, "x", out.String())
}
