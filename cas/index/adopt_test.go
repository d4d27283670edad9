package index_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/protocol"
)

// Many threads come to stand where they stand elsewhere, at once or not at all.
func TestAdopt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x, dir := open(t)
	const h1, h2, h3 = protocol.Hash("0000000000001"), protocol.Hash("0000000000002"), protocol.Hash("0000000000003")
	end := &index.Ended{Workflow: h3, Status: protocol.StatusCompleted, CompletedAt: 5}
	require.NoError(t, x.Adopt(ctx, nil, 1))
	require.NoError(t, x.Adopt(ctx, []index.Adoption{
		{Thread: "active", Head: h1}, {Thread: "ended", Head: h1, End: end}, {Thread: "ends", Head: h1}, {Thread: "resumed", Head: h1, End: end},
	}, 1))
	standings := func() map[string]protocol.Hash {
		all, err := x.Standings(ctx)
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
	want := map[string]protocol.Hash{"active active": h1, "ended ended": h1, "active ends": h1, "ended resumed": h1}
	require.Equal(t, want, standings())

	var conflict *index.ConflictError
	require.ErrorAs(t, x.Adopt(ctx, []index.Adoption{{Thread: "new", Head: h2}, {Thread: "active", Was: h2, Head: h3}}, 1), &conflict)
	require.ErrorAs(t, x.Adopt(ctx, []index.Adoption{{Thread: "ended", Head: h2}}, 1), &conflict, "it is not new")
	require.Error(t, x.Adopt(ctx, []index.Adoption{{Thread: "new", Head: "no hash"}}, 1))
	require.Equal(t, want, standings(), "nothing has changed")

	require.NoError(t, x.Adopt(ctx, []index.Adoption{
		{Thread: "active", Was: h1, Head: h2}, {Thread: "ends", Was: h1, Head: h2, End: end}, {Thread: "resumed", Was: h1, Head: h2},
	}, 1))
	require.Equal(t, map[string]protocol.Hash{"active active": h2, "ended ended": h1, "ended ends": h2, "active resumed": h2}, standings())
	history, err := os.ReadFile(filepath.Join(dir, "history.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(history), "\n"), "two ends, an end, and that one goes on")

	// A line that cannot be read stops only the thread that it may stand for.
	f, err := os.OpenFile(filepath.Join(dir, "history.jsonl"), os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString(`{"thread":"broken","head":` + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Error(t, x.Adopt(ctx, []index.Adoption{{Thread: "broken", Head: h1}}, 1))
	require.NoError(t, x.Adopt(ctx, []index.Adoption{{Thread: "whole", Head: h1}}, 1))
	all, err := x.Standings(ctx)
	require.Error(t, err)
	require.Equal(t, h1, all["whole"].Head)
}
