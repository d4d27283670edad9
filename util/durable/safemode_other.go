//go:build !linux

package durable

import "runtime"

// SafeMode returns the fastest mode that guarantees that a file is durable before any durable file references
// it, and the reason. On this system it is always [Full].
func SafeMode(_, _ string) (Mode, string) {
	return Full, "file systems of " + runtime.GOOS + " are not known to keep the order of writes"
}
