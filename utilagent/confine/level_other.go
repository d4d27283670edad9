//go:build !linux

package confine

// Level is the version of Landlock that the kernel offers; 0: none.
func Level() int { return 0 }

// Seccomp reports whether system calls can be filtered.
func Seccomp() bool { return false }
