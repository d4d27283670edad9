package fileheads_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// A server reads what other processes have changed, and parses nothing that is unchanged.
func TestWithAClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	reader, writer := fileheads.Open(dir, durable.OS()), fileheads.Open(dir, durable.OS())
	reader.Now = func() time.Time { return now }
	ctx := t.Context()
	const one, two = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"
	a, b := protocol.Hash("0000000000001"), protocol.Hash("0000000000002")
	read := func() (active, ended []string, titles map[string]string) {
		titles = map[string]string{}
		for h, err := range reader.Heads(ctx) {
			require.NoError(t, err)
			active = append(active, h.Thread+" "+string(h.Hash))
			of, err := reader.Facts(ctx, h.Thread)
			require.NoError(t, err)
			if of.Title != nil {
				titles[h.Thread] = *of.Title
			}
		}
		for e, err := range reader.History(ctx) {
			require.NoError(t, err)
			ended = append(ended, e.Thread)
		}
		return active, ended, titles
	}
	for _, age := range []time.Duration{0, time.Hour} { // too new to be kept, and kept
		check := func(wantActive, wantEnded []string, title string) {
			t.Helper()
			for range 3 {
				active, ended, titles := read()
				require.Equal(t, wantActive, active)
				require.Equal(t, wantEnded, ended)
				require.Equal(t, title, titles[one])
			}
		}
		require.NoError(t, os.RemoveAll(dir))
		now = time.Now().Add(age)
		check(nil, nil, "")
		title := "first"
		require.NoError(t, writer.Add(ctx, one, a, heads.Facts{Title: &title}))
		check([]string{one + " " + string(a)}, nil, "first")
		require.NoError(t, writer.Move(ctx, one, a, b))
		check([]string{one + " " + string(b)}, nil, "first")
		title = "later"
		require.NoError(t, writer.SetFacts(ctx, one, heads.Facts{Title: &title}))
		check([]string{one + " " + string(b)}, nil, "later")
		require.NoError(t, writer.Add(ctx, two, a, heads.Facts{}))
		require.NoError(t, writer.Archive(ctx, heads.Ended{Thread: two, Workflow: a, Head: a, Status: protocol.StatusCompleted, CompletedAt: 1}))
		check([]string{one + " " + string(b)}, []string{two}, "later")
		// A person edits the file, and then damages it.
		path := filepath.Join(dir, "threads.yaml")
		require.NoError(t, os.WriteFile(path, []byte(one+": '"+string(a)+"' # edited\n"), 0o600))
		check([]string{one + " " + string(a)}, []string{two}, "later")
		require.NoError(t, os.WriteFile(path, []byte("x\n"), 0o600))
		for range 2 {
			problems := 0
			for _, err := range reader.Heads(ctx) {
				require.Error(t, err)
				problems++
			}
			require.Equal(t, 1, problems)
		}
		// What a reader with a clock has read does not change what it writes.
		require.NoError(t, os.WriteFile(path, []byte(one+": "+string(a)+"\n"), 0o600))
		check([]string{one + " " + string(a)}, []string{two}, "later")
		require.NoError(t, reader.Move(ctx, one, a, b))
		check([]string{one + " " + string(b)}, []string{two}, "later")
	}
}
