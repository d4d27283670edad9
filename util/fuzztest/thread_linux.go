package fuzztest

import (
	"time"

	"golang.org/x/sys/unix"
)

// stopwatch measures the processor time of the calling thread. Any thread can read it.
func stopwatch() (spent func() time.Duration) {
	// The clock id of a thread, as in clock_getcpuclockid(3).
	const ofThread, scheduled = 4, 2
	clock := int32(^unix.Gettid()<<3 | ofThread | scheduled)
	read := func() time.Duration {
		var ts unix.Timespec
		if unix.ClockGettime(clock, &ts) != nil {
			return 0 // the thread has exited
		}
		return time.Duration(ts.Nano())
	}
	began := read()
	return func() time.Duration { return read() - began }
}
