package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

const (
	id       = "20261121_013037_de8721"
	finished = "---\nstatus: done\n---\n\nAll done: the command printed hello-from-tool."
)

// hermesHome is a home of Hermes with a database, in which more can be said.
func hermesHome(t *testing.T, statements ...string) (home string) {
	t.Helper()
	schema, err := os.ReadFile("testdata/state/state_db.sql")
	require.NoError(t, err)
	home = t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(home, "state.db"))
	require.NoError(t, err)
	for _, statement := range append([]string{"PRAGMA journal_mode=wal", string(schema)}, statements...) {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	// As Hermes would have it: still open, so that what was written is in the WAL.
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return home
}

func ask(t *testing.T, home string, c cliagent.Call, session string) cliagent.Transcript {
	t.Helper()
	c.Env = func(name string) string { return map[string]string{"HERMES_HOME": home}[name] }
	got, err := transcript(t.Context(), c, cliagent.Outcome{Session: session})
	require.NoError(t, err)
	return got
}

// What a run did is in the database, while Hermes may still have it open.
func TestTranscriptOfDatabase(t *testing.T) {
	t.Parallel()
	got := ask(t, hermesHome(t), cliagent.Call{Prompt: "do it"}, id)
	require.True(t, got.Found)
	require.Equal(t, "anthropic/claude-sonnet-4.6", got.Model)
	require.Equal(t, []protocol.Turn{
		{
			Role: protocol.TurnAssistant, Content: "I'll run a command first.", Reasoning: "I should run it", AtMs: 1795224638000,
			ToolCalls: []protocol.ToolCall{{ID: "call_1", Name: "terminal", Args: map[string]any{"command": "echo hello-from-tool"}}},
		},
		{Role: protocol.TurnTool, ToolCallID: "call_1", Content: `{"output": "hello-from-tool", "exit_code": 0, "error": null}`, AtMs: 1795224638200},
		{Role: protocol.TurnAssistant, Content: finished, AtMs: 1795224639400},
	}, got.Turns)
	require.True(t, got.Usage.TokensOfSession && got.Usage.CostOfSession)
	require.EqualValues(t, 300, got.Usage.InputTokens)
	require.InDelta(t, 0.00266, *got.Usage.CostUSD, 1e-9)
}

// A continued session holds the turns of earlier runs, and what was taken back:
// they are no part of this run.
func TestTranscriptIsOfThisRun(t *testing.T) {
	t.Parallel()
	home := hermesHome(t,
		`INSERT INTO messages(session_id,role,content,timestamp) VALUES('`+id+`','user','Again, please.',1)`,
		`INSERT INTO messages(session_id,role,content,timestamp,active) VALUES('`+id+`','assistant','taken back',2,0)`,
		`INSERT INTO messages(session_id,role,content,timestamp) VALUES('`+id+`','assistant','again',3)`)
	for _, prompt := range []string{"Again, please.", "what Hermes has changed"} {
		got := ask(t, home, cliagent.Call{Prompt: prompt, Resume: true, Session: id}, id)
		require.Len(t, got.Turns, 1)
		require.Equal(t, "again", got.Turns[0].Content)
		require.False(t, got.Fresh)
	}
}

// A session that was compressed goes on in another one, which knows where it is from.
func TestTranscriptOfSplitSession(t *testing.T) {
	t.Parallel()
	const next = "20261121_020000_abcdef"
	home := hermesHome(t,
		`INSERT INTO sessions(id,source,started_at,parent_session_id) VALUES('`+next+`','tool',2,'`+id+`')`,
		`INSERT INTO messages(session_id,role,content,timestamp) VALUES('`+next+`','assistant','the end',3)`,
		`INSERT INTO sessions(id,source,started_at) VALUES('another','tool',2)`)
	c := cliagent.Call{Prompt: "do it", Resume: true, Session: id}
	got := ask(t, home, c, next)
	require.False(t, got.Fresh, "it goes on from the session that was asked for")
	require.Len(t, got.Turns, 4, "with its beginning")
	require.Equal(t, "the end", got.Turns[3].Content)

	require.True(t, ask(t, home, c, "another").Fresh, "this one knows nothing of it")
}

// Versions differ in what they keep.
func TestTranscriptOfOtherVersions(t *testing.T) {
	t.Parallel()
	old := hermesHome(t,
		"ALTER TABLE messages DROP COLUMN active", "ALTER TABLE messages DROP COLUMN reasoning",
		"ALTER TABLE sessions DROP COLUMN parent_session_id", "ALTER TABLE sessions DROP COLUMN actual_cost_usd")
	require.Len(t, ask(t, old, cliagent.Call{Prompt: "do it"}, id).Turns, 3)

	snapshots := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(snapshots, "sessions"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(snapshots, "sessions", "session_"+id+".json"), []byte(`{
		"session_id": "`+id+`", "model": "m", "messages": [
			{"role": "user", "content": "do it"},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": {"name": "terminal", "arguments": {"command": "ls"}}}]},
			{"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "tool_call_id": "c"},
			{"role": "assistant", "content": "done"}]}`), 0o600))
	got := ask(t, snapshots, cliagent.Call{Prompt: "do it"}, id)
	require.Len(t, got.Turns, 3)
	require.Equal(t, map[string]any{"command": "ls"}, got.Turns[0].ToolCalls[0].Args)
	require.Equal(t, "ab", got.Turns[1].Content)
}

// What cannot be looked up is told, and what is not there says nothing.
func TestTranscriptThatIsMissing(t *testing.T) {
	t.Parallel()
	require.False(t, ask(t, t.TempDir(), cliagent.Call{}, id).Found)

	c := cliagent.Call{Env: func(string) string { return hermesHome(t) }}
	_, err := transcript(t.Context(), c, cliagent.Outcome{Session: "20261121_000000_000000"})
	require.ErrorContains(t, err, "is not in")

	_, err = transcript(t.Context(), c, cliagent.Outcome{})
	require.NoError(t, err, "it has named no session")
	empty := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(empty, "state.db"), nil, 0o600))
	require.False(t, ask(t, empty, cliagent.Call{}, id).Found, "a hermes that keeps no session leaves an empty file")

	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "state.db"), []byte("not a database, but as long as the header of one would be"), 0o600))
	_, err = archive{broken}.load(context.Background(), id)
	require.ErrorContains(t, err, "state.db")
	require.False(t, errors.Is(err, errNoSession))
	_, err = archive{hermesHome(t)}.load(t.Context(), "../../etc/passwd")
	require.ErrorIs(t, err, errNoSession)
}
