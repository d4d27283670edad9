package react

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// A conversation continues in a copy, so the old one stays as the last completed step left it.
func TestSessionContinuesInCopy(t *testing.T) {
	t.Parallel()
	m := script(t, say(final))
	b := newBench(t, m)
	first, _ := b.mustRun()

	later := Sessions{Dir: b.sessions.Dir, NewID: func() (string, error) { return "later", nil }} // another process
	second, err := later.Copy(first.ID, asks("again"))
	require.NoError(t, err)
	_, err = b.Run(t.Context(), second)
	require.NoError(t, err)
	require.Len(t, m.requests()[1].Messages, 4)
	require.Equal(t, "again", m.requests()[1].last())

	old, err := later.Open(first.ID)
	require.NoError(t, err)
	require.Len(t, old.Messages, 3)
	info, err := os.Stat(filepath.Join(b.sessions.Dir, first.ID+".jsonl"))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.EqualValues(t, 0o600, info.Mode().Perm(), "it holds what the model has read")
	}
}

// A killed process leaves half a line and calls without an answer.
func TestTornSessionContinues(t *testing.T) {
	t.Parallel()
	m := script(t, say(final))
	b := newBench(t, m)
	s, err := b.sessions.New(llm.System("s"), llm.User("u"))
	require.NoError(t, err)
	require.NoError(t, s.Add(llm.Message{Role: protocol.TurnAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "echo", Args: "{}"}}}))
	path := filepath.Join(b.sessions.Dir, s.ID+".jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"role":"tool","content":"ha`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	again, err := b.sessions.Open(s.ID)
	require.NoError(t, err)
	require.NoError(t, again.Add(llm.User("go on")))
	_, err = b.Run(t.Context(), again)
	require.NoError(t, err)
	sent := m.requests()[0].Messages
	require.Len(t, sent, 5)
	prosetest.Text(t, sent[3].Content)

	whole, err := b.sessions.Open(s.ID)
	require.NoError(t, err)
	require.Len(t, whole.Messages, 5, "what came after the torn line can be read")
}

func TestLostSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.jsonl"), []byte("not JSON\n"), 0o600))
	for _, id := range []string{"none", "bad", "", "../bad", "a/b", `..\bad`} {
		_, err := Sessions{Dir: dir}.Open(id)
		require.ErrorIs(t, err, ErrNoSession, id)
	}
}

// Opening any file either succeeds or reports that there is no session, and what was read can be saved and
// read again.
func FuzzSession(f *testing.F) {
	f.Add([]byte("{\"role\":\"user\",\"content\":\"u\"}\n"))
	f.Add([]byte("{\"role\":\"user\"}\n{\"role\":"))
	f.Add([]byte("\n\n"))
	f.Add([]byte("{\"role\":\"user\"}\n{\"role\":\"assistant\"}\n{\"role\":\"user\"}\n{\"room\":{\"from\":1,\"to\":3,\"keep\":2,\"summary\":\"s\"}}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s := Sessions{Dir: t.TempDir(), NewID: func() (string, error) { return "copy", nil }}
		require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "old.jsonl"), content, 0o600))
		old, err := s.Open("old")
		if err != nil {
			require.ErrorIs(t, err, ErrNoSession)
			return
		}
		_, err = s.Copy("old", asks("more"))
		require.NoError(t, err)
		again, err := s.Open("copy")
		require.NoError(t, err)
		require.Len(t, again.Messages, len(old.Messages)+1)
	})
}
