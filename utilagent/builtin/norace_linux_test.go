//go:build !race

package builtin

const shadow = 1
