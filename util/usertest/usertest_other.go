//go:build !linux

// Package usertest runs tests as an ordinary user, because permissions don't restrict root.
package usertest

import (
	"os"
	"testing"
)

// Ordinary reports whether an ordinary user runs the test. It skips the test otherwise.
func Ordinary(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root can write everywhere")
	}
	return true
}

// Foreign skips the test.
func Foreign(t *testing.T) (home string) {
	t.Helper()
	t.Skip("there is no directory of another user")
	return ""
}
