package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// A plan preserves words and paths that aren't valid UTF-8.
func TestPlan(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "a", "ä", "d/\xff\xfe", "\xff", "{\"a\"}\n"} {
		p := plan.Plan{
			Version: plan.Version, Path: word, Args: []string{"x", word}, Env: []string{"A=" + word}, Dir: word, Temporary: word,
			Keep:   1 << 63,
			Mounts: []plan.Mount{{Path: word, From: word, Kind: plan.Show, Upper: word, Work: word}},
		}
		text := plan.Encode(p)
		got, err := plan.Decode(text)
		require.NoError(t, err)
		require.Equal(t, p, got)
		for n := range text {
			_, err := plan.Decode(text[:n])
			require.Error(t, err, n)
		}
		p.Version = "another"
		got, err = plan.Decode(plan.Encode(p))
		require.NoError(t, err)
		require.Equal(t, plan.Plan{Version: "another"}, got)
	}
}

func TestReportLine(t *testing.T) {
	t.Parallel()
	status := uint32(256)
	for _, r := range []plan.Report{{Started: plan.Version}, {Ended: &status}, {Stage: "mount", Error: "\"no\"", Errno: 1}} {
		var got plan.Report
		require.NoError(t, json.Unmarshal(r.Line(), &got))
		require.Equal(t, r, got)
		require.Equal(t, byte('\n'), r.Line()[len(r.Line())-1])
	}
}
