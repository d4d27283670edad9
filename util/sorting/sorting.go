// Package sorting sorts slices as package slices does, but with one copy of the algorithm for all types.
// Package slices compiles 12 KB for each type.
package sorting

import "sort"

// Func sorts a list like [slices.SortFunc].
func Func[E any](list []E, compare func(a, b E) int) {
	sort.Slice(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// Stable sorts a list like [slices.SortStableFunc].
func Stable[E any](list []E, compare func(a, b E) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
