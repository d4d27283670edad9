//go:build !linux

package confine

// Level returns the Landlock ABI version of the kernel, or 0.
func Level() int { return 0 }

// Seccomp reports whether system calls can be filtered.
func Seccomp() bool { return false }
