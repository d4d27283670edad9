//go:build !linux

package durable

import "errors"

// SyncAll returns an error.
func SyncAll(dir string) error { return pathError("flush", dir, errors.ErrUnsupported) }
