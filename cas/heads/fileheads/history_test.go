package fileheads_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestHistoryListsHowThreadsEnded(t *testing.T) {
	t.Parallel()
	x, dir := with(t, "history.jsonl", strings.Join([]string{
		`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":1,"note":"kept"}`,
		`{"thread":"@b","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","completedAt":2}`,
		`not json`,
		``,
		`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"resumed","completedAt":3}`,
		`{"thread":"@c","workflow":"44P8EP6N3NXZ5","head":"nohash","status":"completed","completedAt":4}`,
		`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"108DB063KRQWW","status":"cancelled","completedAt":5}`,
		`{"thread":"@d","workflow":"44P8EP6N3NXZ5","head":"108DB063KRQWW","status":"completed","completedAt":6}`,
		`{"thread":"@b","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"resumed","completedAt":7}`,
		`{"thread":"@e","workfl`,
	}, "\n"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "threads.yaml"), []byte(ids("@d: 108DB063KRQWW\n")), 0o644))

	var got, problems []string
	for e, err := range x.History(t.Context()) {
		if err != nil {
			require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeInvalid})
			problems = append(problems, err.Error())
			continue
		}
		got = append(got, fmt.Sprintf("%s %s %s %d", e.Thread, e.Head, e.Status, e.CompletedAt))
	}
	require.Equal(t, []string{
		id("b") + " 4EAEYQKFHTJ23 completed 2", // its resumed line ends nothing, and it isn't active
		id("a") + " 108DB063KRQWW cancelled 5",
	}, got, "d is active")
	require.Len(t, problems, 2, "a torn last line is none")
	prosetest.Text(t, problems[0])
	require.Contains(t, problems[1], `history.jsonl:6: head "nohash"`)

	_, err := x.Ended(t.Context(), id("c"))
	require.ErrorContains(t, err, "history.jsonl:6: ", "its only line is damaged")
	require.ErrorIs(t, x.Add(t.Context(), id("c"), h1, heads.Facts{}), &protocol.Error{Code: protocol.CodeInvalid})
	_, err = x.Ended(t.Context(), id("e"))
	require.ErrorIs(t, err, heads.ErrNoThread)
	_, err = x.Ended(t.Context(), id("d"))
	require.ErrorIs(t, err, heads.ErrNoThread)
}

// If the newest end of a thread is damaged, an older one isn't its state.
func TestTheNewestEndIsDamaged(t *testing.T) {
	t.Parallel()
	x, dir := with(t, "history.jsonl", strings.Join([]string{
		`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":1}`,
		`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"resumed","completedAt":2}`,
		`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"108DB063KRQWU","status":"completed","completedAt":3}`,
		``,
	}, "\n"))
	damaged := &protocol.Error{Code: protocol.CodeInvalid}
	_, err := x.Ended(t.Context(), id("a"))
	require.ErrorIs(t, err, damaged)
	require.ErrorContains(t, err, "history.jsonl:3: ")
	old := heads.Ended{Thread: id("a"), Head: "4EAEYQKFHTJ23"}
	require.ErrorIs(t, x.Reopen(t.Context(), old, 4), damaged)
	require.ErrorIs(t, x.Adopt(t.Context(), []heads.Adoption{{Thread: id("a"), Was: old.Head, Head: h1}}, 4), damaged)
	require.NoFileExists(t, filepath.Join(dir, "threads.yaml"))
	_, _, err = x.QuarantineHistory(t.Context())
	require.NoError(t, err)
	require.NoError(t, x.Reopen(t.Context(), old, 4))
}

// Only threads that ended are listed as removed.
func TestForgetListsWhatItRemoved(t *testing.T) {
	t.Parallel()
	x, _ := open(t)
	for _, name := range []string{"active", "ended"} {
		require.NoError(t, x.Add(t.Context(), id(name), h1, heads.Facts{}))
	}
	end := heads.Ended{Thread: id("ended"), Head: h1, Status: protocol.StatusCancelled}
	require.NoError(t, x.Archive(t.Context(), end))
	_, err := x.Forget(t.Context(), map[string]bool{id("active"): true, id("ended"): true, id("unknown"): true})
	require.NoError(t, err)
	for _, name := range []string{"active", "ended", "unknown"} {
		removed, err := x.Removed(id(name))
		require.NoError(t, err)
		require.Equal(t, name == "ended", removed, name)
	}
}

// An older program shows a failed thread as completed, the only end it knows.
func TestAThreadThatHasFailedIsCompletedForOlderPrograms(t *testing.T) {
	t.Parallel()
	x, dir := with(t, "threads.yaml", ids("@a: 108DB063KRQWW\n"))
	end := heads.Ended{Thread: id("a"), Workflow: "44P8EP6N3NXZ5", Head: "108DB063KRQWW", Status: protocol.StatusFailed, CompletedAt: 1}
	require.NoError(t, x.Archive(t.Context(), end))
	text, err := os.ReadFile(filepath.Join(dir, "history.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(text), `"status":"completed","completedAt":1,"failed":true`)
	got, err := x.Ended(t.Context(), id("a"))
	require.NoError(t, err)
	require.Equal(t, end, got)
	for got, err := range x.History(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, end, got)
	}
	require.NoError(t, x.Reopen(t.Context(), end, 2))
	_, err = x.Ended(t.Context(), id("a"))
	require.ErrorIs(t, err, heads.ErrNoThread)
}

func TestRepairTornHistory(t *testing.T) {
	t.Parallel()
	whole := strings.TrimSuffix(sums(`{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":1}`+"\n"), "\n")
	next := sums(`{"thread":"@z","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":1700000000000}` + "\n")
	for _, c := range []struct {
		name, before, want string
		damaged            bool // a line is reported, and stays
	}{
		{"nothing to mend", whole + "\n", whole + "\n" + next, false},
		{"half a line", whole + "\n" + whole[:40], whole + "\n" + next, false},
		{"only half a line", whole[:40], next, false},
		{"one character", whole + "\n{", whole + "\n" + next, false},
		{"zeros", whole + "\n" + whole[:40] + strings.Repeat("\x00", 60), whole + "\n" + next, false},
		{"only zeros", whole + "\n" + strings.Repeat("\x00", 60), whole + "\n" + next, false},
		{"a whole line without its end", whole, whole + "\n" + next, false},
		{"zeros in the place of its end", whole + "\x00\x00", whole + "\n" + next, false},
		{"empty", "", next, false},
		{"zeros, then a line", whole + "\n\x00\x00\x00\n", whole + "\n\x00\x00\x00\n" + next, true},
		{"zeros within half a line", whole + "\n" + whole[:40] + "\x00" + whole[40:60], whole + "\n" + whole[:40] + "\x00" + whole[40:60] + "\n" + next, true},
		{"its end is damaged", whole + "J", whole + "J\n" + next, true},
		{"not ours", whole + "\nyyyy", whole + "\nyyyy\n" + next, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, dir := with(t, "history.jsonl", c.before)
			damaged := func() (reported bool) {
				for _, err := range x.History(t.Context()) {
					reported = reported || err != nil
				}
				return reported
			}
			require.Equal(t, c.damaged, damaged())
			require.NoError(t, x.Add(t.Context(), id("z"), h1, heads.Facts{}))
			require.NoError(t, x.Archive(t.Context(), ended(id("z"), h1)))
			require.Equal(t, c.want, text(t, dir, "history.jsonl"))
			require.Equal(t, c.damaged, damaged())
			switch e, err := x.Ended(t.Context(), id("a")); {
			case strings.Count(c.want, id("a")) > 1: // the damaged line contains another end
				require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeInvalid})
			case strings.Contains(c.want, whole+"\n"):
				require.NoError(t, err)
				require.Equal(t, int64(1), e.CompletedAt)
			}
			n, to, err := x.QuarantineHistory(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.damaged, n == 1)
			require.False(t, damaged())
			if c.damaged {
				moved, err := os.ReadFile(to)
				require.NoError(t, err)
				require.Contains(t, c.want, string(moved))
			}
		})
	}
}

func TestEndedFindsALineAnywhereInALongHistory(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, `{"thread":"@t%d","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":%d}`+"\n", i, i)
	}
	// A line longer than the blocks read.
	fmt.Fprintf(&lines, `{"thread":"@long","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":1,"x":%q}`+"\n", strings.Repeat("x", 300_000))
	x, _ := with(t, "history.jsonl", lines.String())
	for _, i := range []int64{0, 1, 700, 701, 2500, 4998, 4999} {
		e, err := x.Ended(t.Context(), id(fmt.Sprintf("t%d", i)))
		require.NoError(t, err)
		require.Equal(t, i, e.CompletedAt)
	}
	_, err := x.Ended(t.Context(), id("long"))
	require.NoError(t, err)
	_, err = x.Ended(t.Context(), id("t5000"))
	require.ErrorIs(t, err, heads.ErrNoThread)

	// The same after an even longer torn line.
	x, dir := with(t, "history.jsonl", lines.String()+`{"thread":"`+strings.Repeat("y", 1_000_000))
	e, err := x.Ended(t.Context(), id("t0"))
	require.NoError(t, err)
	require.Equal(t, id("t0"), e.Thread)
	require.NoError(t, x.Add(t.Context(), id("new"), h1, heads.Facts{}))
	require.NoError(t, x.Archive(t.Context(), ended(id("new"), h1)))
	require.NotContains(t, text(t, dir, "history.jsonl"), "yyy")
}
