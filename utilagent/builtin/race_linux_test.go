//go:build race

package builtin

// shadow is the maximum factor by which the race detector increases memory: it frees memory late, especially
// on a busy machine.
const shadow = 20
