//go:build !linux

package tmpfstest

// suits returns false: tmpfs is supported only on Linux.
func suits(string) bool { return false }
