package plan_test

import (
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
			Mounts: []plan.Mount{{Path: word, From: word, Kind: plan.Show, Upper: word, Work: word}},
		}
		text, err := plan.Encode(p)
		require.NoError(t, err)
		require.Equal(t, word, p.Args[1], "it is left alone")
		got, err := plan.Decode(text)
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	_, err := plan.Decode([]byte("{"))
	require.Error(t, err)
}
