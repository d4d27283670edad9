//go:build !linux

package fuzzing

import "time"

// stopwatch measures nothing: other systems do not tell a thread's time in a way
// that is known here.
func stopwatch() (spent func() time.Duration) { return func() time.Duration { return 0 } }
