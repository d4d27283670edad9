// Package fuzzing holds what every parser keeps to, whatever it is given: an
// input costs at most [Time] of processor time and [Memory]. A fuzz test says so
// in its first line:
//
//	defer fuzzing.Bounded(t)()
package fuzzing

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// The bounds of one input.
const (
	// Time is processor time of the thread that works, so that a busy machine is
	// no failure. It is measured on Linux.
	Time = time.Second
	// Memory is what is allocated, in bytes, whether or not it is freed again. It
	// is measured while fuzzing, when nothing else runs in the process.
	Memory = 200 << 20
	// hang is the processor time after which the process is ended: a test that
	// does not return cannot fail.
	hang = 10 * Time
)

// Bounded begins to measure; end fails the test if it took too much. Both must be
// called on the goroutine that does the work.
func Bounded(t testing.TB) (end func()) { return within(t, Time) }

func within(t testing.TB, limit time.Duration) (end func()) {
	runtime.LockOSThread()
	spent := stopwatch()
	before := allocated()
	var watch *time.Timer
	watch = time.AfterFunc(hang, func() {
		if d := spent(); d > hang {
			panic(fmt.Sprintf("one input has taken %s of processor time, and goes on", d))
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

// allocated is what the process has allocated so far, in bytes; 0 if it does more
// than to fuzz.
func allocated() uint64 {
	if worker := flag.Lookup("test.fuzzworker"); worker == nil || worker.Value.String() != "true" {
		return 0
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
