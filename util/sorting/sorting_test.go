package sorting_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/sorting"
)

type item struct{ key, place int }

func byKey(a, b item) int { return cmp.Compare(a.key, b.key) }

func TestSorts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 11, 12, 13, 100, 1000} {
		list := make([]item, n)
		for i := range list {
			list[i] = item{key: random.IntN(n/2 + 1), place: i}
		}
		wanted := slices.Clone(list)
		slices.SortStableFunc(wanted, byKey)
		stable := slices.Clone(list)
		sorting.Stable(stable, byKey)
		require.Equal(t, wanted, stable)
		sorting.Func(list, byKey)
		require.True(t, slices.IsSortedFunc(list, byKey))
		require.ElementsMatch(t, wanted, list)
	}
}
