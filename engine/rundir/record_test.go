package rundir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/runfiles"
)

func TestDamagedRecordIsKnown(t *testing.T) {
	t.Parallel()
	r := Record{Thread: "T", Head: "0123456789ABC", Role: "r", Command: []string{"a"}, Pid: 7, StartedAt: 8, Status: Running}
	whole, err := runfiles.Checked(r)
	require.NoError(t, err)
	require.Equal(t, r, decodeRecord(whole))
	for i := range whole {
		for bit := range 8 {
			damaged := append([]byte(nil), whole...)
			damaged[i] ^= 1 << bit
			require.True(t, decodeRecord(damaged).Damaged, "%q", damaged)
		}
		if i < len(whole)-1 {
			require.True(t, decodeRecord(whole[:i]).Damaged, "%q", whole[:i])
		}
	}
	old := []byte(`{"thread":"T","head":"0123456789ABC","role":"r","command":["a"],"pid":7,"startedAt":8,"status":"running"}`)
	require.Equal(t, r, decodeRecord(old), "one of a version that wrote no sum")
}
