// Package fuzztest enforces limits for parsers: any input costs at most [Time] of processor time and [Memory].
// A fuzz test starts with:
//
//	defer fuzztest.Bounded(t)()
package fuzztest

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// The limits for one input.
const (
	// Time is processor time of the current thread, so that a busy machine doesn't cause failures. It is
	// measured on Linux.
	Time = time.Second
	// Memory is the number of bytes allocated, including freed ones. It is measured only while fuzzing, when
	// nothing else runs in the process.
	Memory = 200 << 20
	// hang is the processor time after which the process exits, because a test that doesn't return can't
	// fail.
	hang = 10 * Time
)

// Bounded starts measuring; end fails the test if a limit was exceeded. Both must be called on the goroutine
// that does the work.
func Bounded(t testing.TB) (end func()) { return within(t, Time) }

func within(t testing.TB, limit time.Duration) (end func()) {
	runtime.LockOSThread()
	spent := stopwatch()
	before := allocated()
	var watch *time.Timer
	watch = time.AfterFunc(hang, func() {
		if d := spent(); d > hang {
			panic(fmt.Sprintf("one input has taken %s of processor time, and continues", d))
		}
		watch.Reset(Time)
	})
	return func() {
		watch.Stop()
		took, used := spent(), allocated()-before
		runtime.UnlockOSThread()
		if took > limit {
			t.Errorf("one input takes %s of processor time, more than %s", took, limit)
		}
		if used > Memory {
			t.Errorf("one input takes %d MB, more than %d", used>>20, Memory>>20)
		}
	}
}

// allocated returns the bytes allocated by the process so far, or 0 if it isn't fuzzing.
func allocated() uint64 {
	if worker := flag.Lookup("test.fuzzworker"); worker == nil || worker.Value.String() != "true" {
		return 0
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
