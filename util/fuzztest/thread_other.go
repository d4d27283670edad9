//go:build !linux

package fuzztest

import "time"

// stopwatch always returns zero: measuring a thread's time isn't implemented on this system.
func stopwatch() (spent func() time.Duration) { return func() time.Duration { return 0 } }
