package fileheads_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Many threads get their state from elsewhere atomically.
func TestAdopt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := open(t)
	const h1, h2, h3 = protocol.Hash("0000000000001"), protocol.Hash("0000000000002"), protocol.Hash("0000000000003")
	end := &heads.Ended{Workflow: h3, Status: protocol.StatusCompleted, CompletedAt: 5}
	require.NoError(t, x.Adopt(ctx, nil, 1))
	require.NoError(t, x.Adopt(ctx, []heads.Adoption{
		{Thread: id("active"), Head: h1}, {Thread: id("ended"), Head: h1, End: end}, {Thread: id("ends"), Head: h1}, {Thread: id("resumed"), Head: h1, End: end},
	}, 1))
	standings := func() map[string]protocol.Hash {
		all, err := heads.ThreadStates(ctx, x)
		require.NoError(t, err)
		heads := map[string]protocol.Hash{}
		for id, at := range all {
			state := "active "
			if at.End != nil {
				require.Equal(t, id, at.End.Thread)
				require.EqualValues(t, 5, at.End.CompletedAt)
				state = "ended "
			}
			heads[state+id] = at.Head
		}
		return heads
	}
	want := map[string]protocol.Hash{"active " + id("active"): h1, "ended " + id("ended"): h1, "active " + id("ends"): h1, "ended " + id("resumed"): h1}
	require.Equal(t, want, standings())

	var conflict *heads.ConflictError
	require.ErrorAs(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("new"), Head: h2}, {Thread: id("active"), Was: h2, Head: h3}}, 1), &conflict)
	require.ErrorAs(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("ended"), Head: h2}}, 1), &conflict, "it is not new")
	require.Error(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("new"), Head: "no hash"}}, 1))
	require.Error(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("new"), Head: h2, End: &heads.Ended{Status: "aborted"}}}, 1))
	require.Equal(t, want, standings(), "nothing has changed")

	require.NoError(t, x.Adopt(ctx, []heads.Adoption{
		{Thread: id("active"), Was: h1, Head: h2}, {Thread: id("ends"), Was: h1, Head: h2, End: end}, {Thread: id("resumed"), Was: h1, Head: h2},
	}, 1))
	require.Equal(t, map[string]protocol.Hash{"active " + id("active"): h2, "ended " + id("ended"): h1, "ended " + id("ends"): h2, "active " + id("resumed"): h2}, standings())
	history, err := os.ReadFile(filepath.Join(dir, "history.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(history), "\n"), "two ends, an end, and that one goes on")

	// An unreadable line affects only the thread that it can belong to.
	f, err := os.OpenFile(filepath.Join(dir, "history.jsonl"), os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString(ids(`{"thread":"@broken","head":`) + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Error(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("broken"), Head: h1}}, 1))
	require.NoError(t, x.Adopt(ctx, []heads.Adoption{{Thread: id("whole"), Head: h1}}, 1))
	all, err := heads.ThreadStates(ctx, x)
	require.Error(t, err)
	require.Equal(t, h1, all[id("whole")].Head)
}
