package fuzzing

import (
	"time"

	"golang.org/x/sys/unix"
)

// stopwatch measures the processor time of the calling thread. It may be read
// from any thread.
func stopwatch() (spent func() time.Duration) {
	// The clock of one thread, as clock_getcpuclockid(3) numbers it.
	const ofThread, scheduled = 4, 2
	clock := int32(^unix.Gettid()<<3 | ofThread | scheduled)
	read := func() time.Duration {
		var ts unix.Timespec
		if unix.ClockGettime(clock, &ts) != nil {
			return 0 // the thread has ended
		}
		return time.Duration(ts.Nano())
	}
	began := read()
	return func() time.Duration { return read() - began }
}
