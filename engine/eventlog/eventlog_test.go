package eventlog_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/util/durable"
)

func TestDiary(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "logs")
	files, err := eventlog.Files(dir)
	require.NoError(t, err)
	require.Empty(t, files, "a missing directory is empty")

	day := time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("east", 2*3600))
	add := func(at time.Time, thread, pid string) {
		t.Helper()
		require.NoError(t, eventlog.Append(durable.OS(), dir, eventlog.Entry{TS: at, Pid: pid, Tag: "t", Msg: "m", Thread: thread}))
	}
	add(day.Add(time.Minute), "B", "1-1")
	add(day, "A", "1-2")
	add(day.Add(24*time.Hour), "A", "1-1")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	files, err = eventlog.Files(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, "2026-11-22", files[0].Date)
	require.Equal(t, "2026-11-21.jsonl", files[1].Name, "days are those of UTC")

	read := func(f eventlog.Filter) (threads []string) {
		t.Helper()
		entries, bad, err := eventlog.Read(dir, f)
		require.NoError(t, err)
		require.Zero(t, bad)
		for _, e := range entries {
			threads = append(threads, e.Thread)
		}
		return threads
	}
	require.Equal(t, []string{"A", "B", "A"}, read(eventlog.Filter{}), "oldest first")
	require.Equal(t, []string{"A", "A"}, read(eventlog.Filter{Thread: "A"}))
	require.Equal(t, []string{"A"}, read(eventlog.Filter{Thread: "A", Date: "2026-11-22"}))
	require.Equal(t, []string{"B", "A"}, read(eventlog.Filter{Process: "1-1"}))
	require.Empty(t, read(eventlog.Filter{Date: "2020-01-01"}))

	// An incomplete line only loses that line.
	f, err := os.OpenFile(filepath.Join(dir, files[1].Name), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("{\"ts\":\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	entries, bad, err := eventlog.Read(dir, eventlog.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, bad)
	require.Len(t, entries, 3)

	n, err := eventlog.Clean(durable.OS(), dir, "2026-11-22")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"A"}, read(eventlog.Filter{}))
	n, err = eventlog.Clean(durable.OS(), filepath.Join(dir, "none"), "2026-11-22")
	require.NoError(t, err)
	require.Zero(t, n)
}
