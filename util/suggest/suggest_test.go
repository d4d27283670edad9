package suggest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	roles := []string{"planner", "developer", "reviewer", "tester", "release-manager", "$END", "$SUSPEND"}
	tests := map[string]struct {
		word string
		want []string
	}{
		"a character missing":    {"develper", []string{"developer"}},
		"one too many":           {"plannner", []string{"planner"}},
		"another one":            {"plamner", []string{"planner"}},
		"two swapped":            {"reveiwer", []string{"reviewer"}},
		"case":                   {"DEVELOPER", []string{"developer"}},
		"case and a slip":        {"$End.", []string{"$END"}},
		"the beginning":          {"release", []string{"release-manager"}},
		"too short to begin":     {"re", nil},
		"nothing like it":        {"zebra", nil},
		"empty":                  {"", nil},
		"one letter says little": {"x", nil},
		"itself":                 {"planner", nil},
		"hostile":                {strings.Repeat("x", 1<<20), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, suggest.Nearest(tt.word, roles, 3))
		})
	}
}

func TestNearestOrder(t *testing.T) {
	t.Parallel()
	candidates := []string{"steps", "stop", "start", "step", "stop", "step-details"}
	want := []string{"step", "stop"}
	for range 10 {
		require.Equal(t, want, suggest.Nearest("stp", candidates, 5), "the same whatever the order")
		candidates = append(candidates[1:], candidates[0])
	}
	require.Equal(t, want[:1], suggest.Nearest("stp", candidates, 1))
	require.Empty(t, suggest.Nearest("stp", candidates, 0))
	require.Empty(t, suggest.Nearest("stp", nil, 3))
	slices.Reverse(candidates)
	require.Equal(t, []string{"step"}, suggest.Nearest("setp", candidates, 1))
}
