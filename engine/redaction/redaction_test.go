package redaction

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/secret"
)

// A text of a node is each of its lines that is too long to match by chance.
func TestLearn(t *testing.T) {
	t.Parallel()
	const long = "sixteen letters."
	for _, c := range []struct {
		name  string
		value any
		holds []string
		not   []string
	}{
		{"nothing", nil, nil, []string{long}},
		{"a number", 12345678.0, nil, []string{"12345678"}},
		{"a text", long, []string{long, "x" + long + "x"}, []string{long[:15]}},
		{"lines", "  " + long + "  \nshort\n" + long + "2\n", []string{long, "9: " + long + "2"}, []string{"short"}},
		{"a short text", "fifteen letters", []string{"fifteen letters"}, nil},
		{"too short", strings.Repeat("x", secret.Shortest-1), nil, []string{strings.Repeat("x", secret.Shortest)}},
		{"just enough", strings.Repeat("x", secret.Shortest), []string{strings.Repeat("x", secret.Shortest)}, nil},
		{"inside", map[string]any{"content": []any{map[string]any{"args": long}}}, []string{long}, nil},
		{"names", map[string]any{"role": long, "name": long, "id": long, "toolCallId": long}, nil, []string{long}},
	} {
		got := copies{texts: secret.NewSet()}
		got.learn(c.value)
		for _, text := range c.holds {
			assert.True(t, got.texts.Holds(text), "%s: %s", c.name, text)
		}
		for _, text := range c.not {
			assert.False(t, got.texts.Holds(text), "%s: %s", c.name, text)
		}
	}
}

// The path of a home is not a pattern.
func TestNotesInAnyHome(t *testing.T) {
	t.Parallel()
	c := copies{dirs: home.Dirs{Home: filepath.Join(t.TempDir(), "[home]")}}
	dir := filepath.Join(c.dirs.Sessions(), "p")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "T1.worker-0.json"), []byte(`{"sessionId":"a-session"}`), 0o600))
	require.NoError(t, c.findNotes("T1"))
	require.Equal(t, []string{"a-session"}, c.sessions)
}

func TestOurs(t *testing.T) {
	t.Parallel()
	dirs := home.Dirs{Home: "/h"}
	c := copies{dirs: dirs, threads: []string{"T1", "T2"}, sessions: []string{"a-session"}}
	for path, want := range map[string]bool{
		dirs.Run("T1") + "/stderr": true, dirs.Run("T2") + "/x": true, dirs.Run("T3") + "/stderr": false, dirs.Run("T1") + "/sub/stderr": false,
		"/h/sessions/p/T1.worker-0.json": true, "/h/sessions/p/T12.json": false, "/h/sessions/p/T1": false, "/h/sessions/p/x-a-session.jsonl": true,
		"/h/sessions/a-session/x": false,
	} {
		assert.Equal(t, want, c.ours(path), path)
	}
	removed, err := (&copies{dirs: dirs, texts: secret.NewSet()}).remove()
	require.NoError(t, err)
	assert.Empty(t, removed)
}
