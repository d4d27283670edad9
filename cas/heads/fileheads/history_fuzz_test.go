package fileheads_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/fuzztest"
)

// FuzzHistory checks that, with any file content, the next thread that ends is found, no existing one is
// lost, and the search from the end agrees with the listing from the start.
func FuzzHistory(f *testing.F) {
	const whole = `{"thread":"@a","workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":1}`
	for _, text := range []string{
		"", "\n", whole, whole + "\n", whole + "\n" + whole[:30], whole + "\n\x00\x00", "x\n" + whole + "\n", whole[:50] + "\n" + whole + "\n",
		`{"thread":"@a","head":"4EAEYQKFHTJ23","status":"resumed"}` + "\n", `{"thread":"@a","head":"4EAEYQKFHTJ23"}`, "\r\n" + whole + "\r\n",
	} {
		f.Add([]byte(ids(text)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzztest.Bounded(t)()
		dir := t.TempDir()
		x := fileheads.Open(dir, durable.OS())
		name := filepath.Join(dir, "history.jsonl")
		require.NoError(t, os.WriteFile(name, text, 0o644))
		before, damaged := history(t, x)
		for _, e := range before {
			// A line with needlessly escaped ids isn't ours.
			if quoted, err := json.Marshal(e.Thread); err == nil && bytes.Contains(text, quoted) {
				found, err := x.Ended(t.Context(), e.Thread)
				require.NoError(t, err)
				require.Equal(t, e, found)
			}
		}
		end := ended(id("fuzzed-thread"), h1)
		if x.Add(t.Context(), end.Thread, h1, heads.Facts{}) != nil {
			return // the text already mentions that thread
		}
		require.NoError(t, x.Archive(t.Context(), end))
		found, err := x.Ended(t.Context(), end.Thread)
		require.NoError(t, err)
		require.Equal(t, end, found)
		after, stillDamaged := history(t, x)
		require.Equal(t, append(before, end), after)
		require.Equal(t, damaged, stillDamaged)
	})
}

func history(t *testing.T, x *fileheads.Heads) (lines []heads.Ended, damaged int) {
	t.Helper()
	for e, err := range x.History(t.Context()) {
		if err != nil {
			damaged++
			continue
		}
		lines = append(lines, e)
	}
	return lines, damaged
}
