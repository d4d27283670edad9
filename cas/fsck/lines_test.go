package fsck_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/internal/steptest"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/sampletest"
)

const otherID = "01BX5ZZKBKACTAV9WEVGEMMVRZ"

// ran writes the record of a thread's last run.
func (w *world) ran(id string, head cas.Hash) {
	dir := filepath.Join(w.home, "runs", id)
	require.NoError(w, os.MkdirAll(dir, 0o755))
	require.NoError(w, os.WriteFile(filepath.Join(dir, "run.json"), fmt.Appendf(nil, `{"thread":%q,"head":%q,"status":"failed"}`, id, head), 0o600))
}

// content returns the content of the index, and whether it reports damage.
func (w *world) content() (entries []string, named bool) {
	ctx := context.Background()
	for h, err := range w.index.Heads(ctx) {
		entries, named = append(entries, fmt.Sprint(h)), named || err != nil
	}
	for e, err := range w.index.History(ctx) {
		entries, named = append(entries, fmt.Sprint(e)), named || err != nil
	}
	names, err := w.index.Workflows(ctx)
	return append(entries, fmt.Sprint(names)), named || err != nil
}

// TestFlippedBits checks damage after which a line is still well-formed, with another id, hash or name. Fsck
// detects it, and each of its repairs preserves the original line.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	require.NoError(t, w.index.Add(t.Context(), otherID, w.start, heads.Facts{}))
	w.ran(threadID, w.steps[0])
	w.ran(otherID, w.start)
	before, named := w.content()
	require.False(t, named)
	require.Empty(t, w.check(false).Faults)
	sample := sampletest.New(t)
	for _, name := range []string{"threads.yaml", "registry.yaml"} {
		file := filepath.Join(w.home, name)
		good, err := os.ReadFile(file)
		require.NoError(t, err)
		for at := range good {
			for bit := range 8 {
				if !sample() {
					continue
				}
				bad := slices.Clone(good)
				bad[at] ^= 1 << bit
				require.NoError(t, os.WriteFile(file, bad, 0o644))
				after, named := w.content()
				if named || slices.Equal(before, after) {
					continue
				}
				report := w.check(false)
				require.NotEmpty(t, report.Faults, "%q", bad)
				if name == "threads.yaml" {
					require.False(t, report.Sound(), "%q", bad)
				}
			}
		}
		require.NoError(t, os.WriteFile(file, good, 0o644))
	}
}

// Unreadable lines are moved to the quarantine; the rest stays.
func TestLinesAreMovedToTheQuarantine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, bad string }{
		"a thread":       {"threads.yaml", "p1M81TCH3NDEKTSV4RRFFQ69G5: 4EAEYQKFHTJ23\n"},
		"not an entry":   {"threads.yaml", "rubbish\n"},
		"a flow mapping": {"threads.yaml", "{" + otherID + ": nothing}\n"},
		"a name":         {"registry.yaml", "\"a$(b)\": WORKFLOW\n"},
		"half a hash":    {"registry.yaml", "x: 4EAE\n"},
		"a status":       {"history.jsonl", `{"thread":"` + otherID + `","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"combleted","completedAt":1}` + "\n"},
		"a time":         {"history.jsonl", `{"thread":"` + otherID + `","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":-1}` + "\n"},
		"facts":          {"facts.jsonl", `{"thread":"` + otherID + `","title":"x","check":"00000000"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			file := filepath.Join(w.home, c.file)
			good, err := os.ReadFile(file)
			if err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
			}
			c.bad = strings.ReplaceAll(c.bad, "WORKFLOW", string(w.workflow))
			_, edited, summed := strings.Cut(string(good), "# sum: ")
			if _, edited, _ = strings.Cut(edited, "\n"); !summed {
				edited = string(good)
			}
			require.NoError(t, os.WriteFile(file, []byte(edited+c.bad), 0o644))
			report := w.check(false)
			require.Len(t, report.Faults, 1)
			require.Equal(t, file, report.Faults[0].Path)
			require.Contains(t, report.Faults[0].Message, c.file)

			report = w.check(true)
			require.True(t, report.Sound(), "%+v", report.Faults)
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			if c.file == "facts.jsonl" { // the threads are now in doubt
				require.Equal(t, strings.Count(string(now), "\n"), strings.Count(string(now), `"lost":true`))
			} else {
				require.Equal(t, string(good), string(now))
			}
			moved, err := os.ReadFile(filepath.Join(w.home, "quarantine", c.file))
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(string(moved), c.bad))
			require.Empty(t, w.check(false).Faults)
		})
	}
}

// A rejected step that doesn't fit its chain is garbage. It is a fault only if something references it.
func TestARefusedStepIsGarbage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	ctx := t.Context()
	at, err := thread.Open(ctx, w.store, w.steps[1])
	require.NoError(t, err)
	at.Last.Index = 6 // makes the next step's index wrong
	b := w.batch()
	next, err := steptest.Append(ctx, b, at, steptest.Step{
		Role: "r", Type: w.store.Kinds().Hash(protocol.KindSuspend), Value: map[string]any{"$status": "$SUSPEND", "reason": "x"},
		Answer: "x", Prompt: "x",
	})
	require.NoError(t, err)
	report := w.check(false)
	require.True(t, hasFault(report, fsck.Chain, next), "%+v", report)
	require.True(t, report.Sound(), "%+v", report.Faults)

	require.NoError(t, w.index.Add(ctx, otherID, next, heads.Facts{}))
	require.False(t, w.check(false).Sound())
	require.NoError(t, w.index.Archive(ctx, heads.Ended{Thread: otherID, Head: next, Status: protocol.StatusCompleted}))
	require.False(t, w.check(false).Sound())
}
