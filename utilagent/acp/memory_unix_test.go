//go:build unix

package acp_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlood checks that memory use does not grow with the agent's output. It is not parallel, because it
// measures the heap of the whole process.
func TestFlood(t *testing.T) {
	a := play(t, "", "flood")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := a.step().Succeeded()
	runtime.ReadMemStats(&after)
	require.Less(t, after.HeapSys, before.HeapSys+64<<20, "of 100 MB") // it may have fallen
	require.Equal(t, good, got.Content)
}
