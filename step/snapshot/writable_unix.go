//go:build unix

package snapshot

import "golang.org/x/sys/unix"

// writable reports whether the user can change the entries of a directory.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
