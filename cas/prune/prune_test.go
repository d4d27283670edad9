package prune_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/usertest"
)

const (
	head     protocol.Hash = "0123456789ABC"
	active                 = "01ARZ3NDEKTSV4RRFFQ69G5FAA"
	old                    = "01ARZ3NDEKTSV4RRFFQ69G5FAB"
	recent                 = "01ARZ3NDEKTSV4RRFFQ69G5FAC"
	reopened               = "01ARZ3NDEKTSV4RRFFQ69G5FAD"
	busy                   = "01ARZ3NDEKTSV4RRFFQ69G5FAE"
	orphan                 = "01ARZ3NDEKTSV4RRFFQ69G5FAF"
	undated                = "01ARZ3NDEKTSV4RRFFQ69G5FAG" // started in 2016
	day                    = 24 * time.Hour
)

// world returns a home with threads of every kind, and the date on which it is pruned.
func world(t *testing.T) (home string, now time.Time) {
	ctx := t.Context()
	home, now = t.TempDir(), time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	x := fileheads.Open(home, durable.OS())
	end := func(id string, ago time.Duration) heads.Ended {
		require.NoError(t, x.Add(ctx, id, head, heads.Facts{}))
		e := heads.Ended{Thread: id, Workflow: head, Head: head, Status: protocol.StatusCompleted, CompletedAt: now.Add(-ago).UnixMilli()}
		require.NoError(t, x.Archive(ctx, e))
		return e
	}
	require.NoError(t, x.Add(ctx, active, head, heads.Facts{}))
	for _, id := range []string{old, busy, orphan} {
		end(id, 40*day)
		run := filepath.Join(home, "runs", id)
		require.NoError(t, os.MkdirAll(filepath.Join(run, "deep"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(run, "deep", "file"), nil, 0o444))
		require.NoError(t, os.WriteFile(filepath.Join(run, "agent.lock"), nil, 0o644))
	}
	end(recent, 10*day)
	require.NoError(t, x.Reopen(ctx, end(reopened, 50*day), 1))
	require.NoError(t, x.Add(ctx, undated, head, heads.Facts{}))
	require.NoError(t, x.Archive(ctx, heads.Ended{Thread: undated, Head: head, Status: protocol.StatusCancelled}))
	return home, now
}

func TestPrune(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	home, now := world(t)
	hold := func(path string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		lock, err := durable.Lock(ctx, path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = lock.Unlock() })
	}
	hold(filepath.Join(home, "locks", busy+".lock"))        // being resumed
	hold(filepath.Join(home, "runs", orphan, "agent.lock")) // its agent has outlived its engine
	x := fileheads.Open(home, durable.OS())
	options := prune.Options{Home: home, Keep: 30 * day, DryRun: true, Now: now}
	before, err := os.ReadFile(filepath.Join(home, "history.jsonl"))
	require.NoError(t, err)

	dry, err := prune.Run(ctx, x, options)
	require.NoError(t, err)
	after, err := os.ReadFile(filepath.Join(home, "history.jsonl"))
	require.NoError(t, err)
	require.Equal(t, before, after, "a dry run changes nothing")

	options.Spare = func(_ context.Context, thread string) (string, error) {
		return map[string]string{old: "it has work"}[thread], nil
	}
	spared, err := prune.Run(ctx, x, options)
	require.NoError(t, err)
	require.Equal(t, []string{undated}, ids(spared.Pruned))
	require.Equal(t, []prune.Spared{{Thread: old, Reason: "it has work"}}, spared.Spared)
	require.Equal(t, 4, spared.Kept)

	options.DryRun, options.Spare = false, nil
	report, err := prune.Run(ctx, x, options)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{old, undated}, ids(report.Pruned))
	require.ElementsMatch(t, []string{busy, orphan}, report.Busy)
	require.Equal(t, 3, report.Kept)
	dry.DryRun = false
	require.Equal(t, dry, report, "a dry run says what will be done")

	_, err = x.Ended(ctx, old)
	require.ErrorIs(t, err, heads.ErrNoThread)
	require.NoDirExists(t, filepath.Join(home, "runs", old))
	for _, id := range []string{active, reopened} {
		got, err := x.Head(ctx, id)
		require.NoError(t, err, "what is active stays")
		require.Equal(t, head, got)
	}
	for _, id := range []string{recent, busy, orphan} {
		_, err := x.Ended(ctx, id)
		require.NoError(t, err)
	}

	report, err = prune.Run(ctx, x, options)
	require.NoError(t, err)
	require.Empty(t, report.Pruned)
}

// An agent can leave anything in its run directory.
func TestClosedRunDirectory(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	home, now := world(t)
	run := filepath.Join(home, "runs", old)
	require.NoError(t, os.Chmod(filepath.Join(run, "deep"), 0))
	x := fileheads.Open(home, durable.OS())
	report, err := prune.Run(t.Context(), x, prune.Options{Home: home, Keep: 30 * day, Now: now, Threads: []string{old}})
	require.NoError(t, err)
	require.Equal(t, []string{old}, ids(report.Pruned))
	require.NoDirExists(t, run)
}

// A run that can't be examined stays, and all others are forgotten.
func TestARunThatCannotBeExamined(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	home, now := world(t)
	run := filepath.Join(home, "runs", old)
	require.NoError(t, os.WriteFile(filepath.Join(run, "agent.lock"), nil, 0))
	require.NoError(t, os.Chmod(filepath.Join(run, "agent.lock"), 0))
	x := fileheads.Open(home, durable.OS())
	options := prune.Options{Home: home, Keep: 30 * day, Now: now}
	report, err := prune.Run(t.Context(), x, options)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{busy, orphan, undated}, ids(report.Pruned))
	require.Equal(t, []string{old}, []string{report.Spared[0].Thread})
	options.Threads = []string{old}
	_, err = prune.Run(t.Context(), x, options)
	require.ErrorIs(t, err, fs.ErrPermission)
}

// A run with files of another user stays, and all others are forgotten.
func TestARunThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	foreign := usertest.Foreign(t)
	home, now := world(t)
	runs := filepath.Join(home, "runs")
	require.NoError(t, os.RemoveAll(runs))
	require.NoError(t, os.Symlink(foreign, runs))
	require.NoError(t, os.Rename(filepath.Join(foreign, "foreign"), filepath.Join(foreign, old)))
	x := fileheads.Open(home, durable.OS())
	options := prune.Options{Home: home, Keep: 30 * day, Now: now}
	report, err := prune.Run(t.Context(), x, options)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{busy, orphan, undated}, ids(report.Pruned))
	require.Equal(t, []string{old}, []string{report.Spared[0].Thread})
	_, err = x.Ended(t.Context(), old)
	require.NoError(t, err)
	options.Threads = []string{old}
	_, err = prune.Run(t.Context(), x, options)
	require.ErrorIs(t, err, fs.ErrPermission)
}

// While the facts are damaged, the family of an active thread is unknown.
func TestAChildWithDamagedFactsStays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	home, now := t.TempDir(), time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	x := fileheads.Open(home, durable.OS())
	require.NoError(t, x.Add(ctx, active, head, heads.Facts{}))
	require.NoError(t, x.Add(ctx, old, head, heads.Facts{Parent: &heads.Parent{Thread: active, Head: head, Role: "r"}}))
	require.NoError(t, x.Archive(ctx, heads.Ended{Thread: old, Head: head, Status: protocol.StatusCompleted, CompletedAt: 1}))
	facts, err := os.ReadFile(x.FactsPath())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(x.FactsPath(), bytes.Replace(facts, []byte("parent"), []byte("par*nt"), 1), 0o600))
	_, err = prune.Run(ctx, x, prune.Options{Home: home, Now: now})
	require.ErrorContains(t, err, x.FactsPath())
	_, err = heads.Find(ctx, x, old)
	require.NoError(t, err)
	report, err := prune.Run(ctx, x, prune.Options{Home: home, Now: now, Threads: []string{old}})
	require.NoError(t, err)
	require.Equal(t, []string{old}, ids(report.Pruned))
}

func ids(all []heads.Ended) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.Thread)
	}
	return out
}

// Nothing is forgotten while a line of the history is unreadable.
func TestADamagedHistoryIsNotPruned(t *testing.T) {
	t.Parallel()
	home, now := world(t)
	path := filepath.Join(home, "history.jsonl")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append([]byte("nonsense\n"), data...), 0o644))
	_, err = prune.Run(t.Context(), fileheads.Open(home, durable.OS()), prune.Options{Home: home, Now: now})
	require.ErrorContains(t, err, "history.jsonl:1")
}

func TestNoHistory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	report, err := prune.Run(t.Context(), fileheads.Open(home, durable.OS()), prune.Options{Home: home, Now: time.Unix(0, 0)})
	require.NoError(t, err)
	require.Empty(t, report.Pruned)
}

// Threads of a database have neither locks nor runs. A family stays as long as one of its threads is active.
func TestWithoutAHome(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	x := fileheads.Open(t.TempDir(), durable.OS())
	for id, parent := range map[string]string{old: "", orphan: old, busy: "", active: busy} {
		facts := heads.Facts{}
		if parent != "" {
			facts.Parent = &heads.Parent{Thread: parent, Head: head, Role: "r"}
		}
		require.NoError(t, x.Add(ctx, id, head, facts))
		if id == active {
			continue
		}
		require.NoError(t, x.Archive(ctx, heads.Ended{Thread: id, Head: head, Status: protocol.StatusCompleted, CompletedAt: 1}))
	}
	report, err := prune.Run(ctx, x, prune.Options{Keep: day, Now: now})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{old, orphan}, ids(report.Pruned))
	require.Equal(t, 1, report.Kept)
}
