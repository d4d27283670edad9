//go:build !linux

package durable

import "runtime"

// SafeMode tells which mode keeps the promise that nothing durable names a file
// before that file is durable, and why. On this system it is always [Full].
func SafeMode(_, _ string) (Mode, string) {
	return Full, "file systems of " + runtime.GOOS + " are not known to keep the order of writes"
}
