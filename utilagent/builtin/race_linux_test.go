//go:build race

package builtin

// shadow is how many times the memory the race detector needs, at most: it keeps
// what was freed until it gets round to it, which a busy machine delays.
const shadow = 20
