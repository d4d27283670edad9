//go:build unix

package acp_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory does not grow with what an agent tells. It is not parallel: what the
// heap has taken from the system is everybody's.
func TestFlood(t *testing.T) {
	a := play(t, "", "flood")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := a.step().Succeeded()
	runtime.ReadMemStats(&after)
	require.Less(t, after.HeapSys-before.HeapSys, uint64(64<<20), "of 100 MB")
	require.Equal(t, good, got.Content)
}
