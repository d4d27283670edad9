//go:build race

package builtin

// shadow is how many times the memory the race detector needs, at most.
const shadow = 10
