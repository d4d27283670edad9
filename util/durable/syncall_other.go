//go:build !linux

package durable

import "errors"

// FlushesAll reports whether [SyncAll] is supported: not on this system.
func FlushesAll(string) bool { return false }

// SyncAll returns an error.
func SyncAll(dir string) error { return pathError("flush", dir, errors.ErrUnsupported) }
