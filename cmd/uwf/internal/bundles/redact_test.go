package bundles_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Nodes that a thread needs to continue, or that others share, are kept.
func TestRedactRefused(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	first, last := clitest.Payload[protocol.Step](w, steps[0]), clitest.Payload[protocol.Step](w, steps[1])
	start := clitest.Payload[protocol.Start](w, first.Start)
	schema, err := w.Store().Get(t.Context(), first.Output)
	require.NoError(t, err)
	alien := w.Must("cas put-text alien")["hash"].(string)
	redact := "thread redact " + a + " --node "
	refuse(t, w,
		refused{redact + string(steps[1]), "invalid", 4},
		refused{redact + string(steps[0]), "invalid", 4},
		refused{redact + string(first.Start), "invalid", 4},
		refused{redact + string(start.Workflow), "invalid", 4},
		refused{redact + string(schema.Type), "invalid", 4},
		refused{redact + string(last.Output), "invalid", 4},
		refused{redact + alien, "not_found", 3},
		refused{redact + "0000000000000", "not_found", 3},
		refused{redact + "x", "not_found", 3},
		refused{"thread redact 01B --node " + string(first.Output), "not_found", 3},
		refused{"thread redact " + a, "usage", 2},
		refused{"thread redact " + a + " --node " + string(first.Output) + " --files x", "usage", 2},
		refused{"thread redact " + a + " --files x --reason why", "usage", 2},
		refused{"thread redact", "usage", 2},
	)
	assert.Equal(t, 0, len(list(w.Must("cas fsck"), "tombstones")))
}

func TestRedact(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	seal := w.Must("thread seal " + a)["seal"]
	first := clitest.Payload[protocol.Step](w, steps[0])
	turn := string(clitest.Payload[protocol.Detail](w, first.Detail).Turns[0])
	for _, c := range []struct {
		what, node, kind string
	}{{"a turn", turn, "turn"}, {"an older output", string(first.Output), ""}, {"a prompt", string(*first.Prompt), "text"}, {"a detail", string(first.Detail), "detail"}} {
		done := w.Must("thread redact "+a+" --node "+c.node+" --reason", "why not")
		assert.Equal(t, [3]any{a, c.node, "why not"}, [3]any{done["thread"], done["node"], done["reason"]}, c.what)
		assert.Nil(t, done["already"], c.what)
		if c.kind != "" {
			assert.Equal(t, c.kind, done["kind"], c.what)
		}
		again := w.Run("thread redact " + a + " --node " + c.node)
		assert.Zero(t, again.Status, c.what)
		assert.Equal(t, true, w.JSON(again.Out)["already"], c.what)
		assert.Equal(t, "why not", w.JSON(again.Out)["reason"], c.what)
		assert.Empty(t, again.Err, c.what)
		prosetest.Text(t, w.Run("thread redact "+a+" --node "+c.node+" --format text").Out, c.what)
		_, err := w.Store().Get(t.Context(), cas.Hash(c.node))
		redacted, ok := cas.AsRedacted(err)
		require.True(t, ok, c.what)
		assert.Equal(t, "why not", redacted.Tombstone.Reason, c.what)
		assert.Equal(t, seal, w.Must("thread seal " + a)["seal"], c.what)
		assert.Zero(t, w.Run("cas fsck").Status, c.what)
	}
	// The bundle contains tombstones instead.
	written := w.Must("thread export " + a + " -o b.uwfb")
	assert.Equal(t, 3, num(t, written, "tombstones"), "the turn is not reached any more")
	report := w.Must("verify b.uwfb")
	assert.Len(t, list(report, "tombstones"), 3)
	assert.Equal(t, []any{"why not", "why not", "why not"}, field(list(report, "tombstones"), "reason"))
	assert.Contains(t, w.Run("verify b.uwfb --format text").Out, "3 redacted")
	// Elsewhere they arrive as tombstones, except where the content exists already.
	other := w.Other()
	assert.Len(t, other.Must("thread import b.uwfb")["redactions"], 3)
	assert.Zero(t, other.Run("cas fsck").Status)
	whole := w.Other()
	whole.Must("thread import a.uwfb")
	assert.Len(t, whole.Must("thread import b.uwfb")["whole"], 3)
	assert.Len(t, w.Must("thread import a.uwfb")["redacted"], 4)
	_, err := w.Store().Get(t.Context(), first.Output)
	_, ok := cas.AsRedacted(err)
	assert.True(t, ok, "it does not come back")
}

// A node that other threads share is redacted for all of them if requested.
func TestRedactShared(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	fork := w.Must("thread fork " + string(steps[0]))["thread"].(string)
	turn := string(clitest.Payload[protocol.Detail](w, clitest.Payload[protocol.Step](w, steps[0]).Detail).Turns[0])
	refuse(t, w, refused{"thread redact " + a + " --node " + turn, "invalid", 4})
	done := w.Must("thread redact " + a + " --node " + turn + " --shared")
	assert.Equal(t, []any{fork}, done["shared"])
	own := clitest.Payload[protocol.Detail](w, clitest.Payload[protocol.Step](w, steps[1]).Detail).Turns[0]
	done = w.Must("thread redact " + a + " --node " + string(own))
	assert.Empty(t, done["shared"])
	r := w.Run("thread redact " + a + " --node " + turn + " --shared --format text")
	prosetest.Text(t, r.Out)
}

// Files of the last run and of the thread's sessions that contain the text are removed; others, and those
// that the run needs, stay.
func TestRedactCopies(t *testing.T) {
	t.Parallel()
	const secret = "The secret is 1234, they say."
	w, a, steps := world(t)
	session := a + "-worker"
	turn := string(clitest.Payload[protocol.Detail](w, clitest.Payload[protocol.Step](w, steps[0]).Detail).Turns[0])
	run, sessions := filepath.Join("runs", a), filepath.Join("sessions", "uwf-x")
	note := filepath.Join(sessions, a+".worker-1.json")
	type file struct {
		text string
		gone bool
	}
	files := map[string]file{
		filepath.Join(run, "program.stdout"):             {"it said: " + secret + "\n", true},
		filepath.Join(run, "stderr"):                     {secret, true},
		filepath.Join(run, "program.stderr"):             {"nothing of it", false},
		filepath.Join(run, "totals.json"):                {secret, false},
		filepath.Join(run, "stdout"):                     {secret, false},
		filepath.Join("runs", "another", "stderr"):       {secret, false},
		filepath.Join(sessions, a+".worker-0.json"):      {secret, true},
		filepath.Join(sessions, a+".worker-0.old"):       {"nothing of it", false},
		filepath.Join(sessions, "another.worker-0.json"): {secret, false},
		filepath.Join(sessions, "x-"+session+".jsonl"):   {"1  " + secret, true},
		note: {`{"sessionId":"a-session-of-its-own"}`, false},
		filepath.Join(sessions, "a-session-of-its-own"): {secret, true},
	}
	for name, f := range files {
		path := filepath.Join(w.Home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(f.text), 0o600))
	}
	r := w.Run("thread redact " + a + " --node " + turn)
	require.Zero(t, r.Status, r.Err)
	gone := 0
	for name, f := range files {
		path := filepath.Join(w.Home, name)
		if f.gone {
			gone++
			assert.NoFileExists(t, path)
			assert.Contains(t, r.Err, "also removed from "+path)
		} else {
			assert.FileExists(t, path)
			assert.NotContains(t, r.Err, path)
		}
	}
	assert.Equal(t, gone, strings.Count(r.Err, "also removed from "))
}

// Without a repository there are no snapshots.
func TestRedactFiles(t *testing.T) {
	t.Parallel()
	w, a, _ := world(t)
	redact := "thread redact " + a + " --files "
	refuse(t, w,
		refused{redact + "x", "not_found", 3},
		refused{redact + "../x", "usage", 2},
		refused{redact + "/etc/passwd", "usage", 2},
		refused{redact + ".", "usage", 2},
	)
}

// A result that cannot be printed is an error, whichever part fails.
func TestUnprinted(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	fork := w.Must("thread fork " + string(steps[0]))["thread"].(string)
	turn := string(clitest.Payload[protocol.Detail](w, clitest.Payload[protocol.Step](w, steps[0]).Detail).Turns[0])
	w.Must("thread redact " + a + " --shared --node " + turn)
	w.Must("thread export " + a + " " + fork + " -o both.uwfb")
	w.Must("cas export " + string(steps[0]) + " -o node.uwfb")
	for _, line := range []string{
		"verify both.uwfb", "verify node.uwfb", "thread seal " + a, "thread export " + a + " -o x.uwfb", "thread export " + a + " -o -", "thread export " + a + " --html -o x.html",
		"thread export " + a + " --html -o -", "thread redact " + a + " --shared --node " + turn, "thread import both.uwfb",
	} {
		w.Unprinted(line)
	}
}

// What each command needs of a home. A damaged home is never taken for an empty one.
func TestSpoilt(t *testing.T) {
	t.Parallel()
	w, a, steps := world(t)
	w.Must("thread seal " + a)
	w.Must("thread redact " + a + " --node " + string(clitest.Payload[protocol.Step](w, steps[0]).Output))
	turn := string(clitest.Payload[protocol.Detail](w, clitest.Payload[protocol.Step](w, steps[0]).Detail).Turns[0])
	for _, line := range []string{
		"thread export --all -o x.uwfb", "thread export " + a + " --html -o x.html", "thread seal " + a,
		"thread redact " + a + " --node " + turn, "thread import a.uwfb",
	} {
		prosetest.Text(t, w.Spoilt(line), strings.ReplaceAll(line, turn, "TURN"))
	}
}

// Missing nodes are never ignored.
func TestLossy(t *testing.T) {
	t.Parallel()
	w, a, _ := world(t)
	seal := w.Must("thread seal " + a)["seal"].(string)
	w.Lossy("thread export --all -o -", "thread seal "+a+" --expect "+seal)
}
