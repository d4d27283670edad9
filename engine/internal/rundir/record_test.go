package rundir

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDamagedRecordIsKnown(t *testing.T) {
	t.Parallel()
	r := Record{Thread: "T", Head: "0123456789ABC", Role: "r", Command: []string{"a"}, Pid: 7, StartedAt: 8, Status: Running}
	whole, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, r, decodeRecord(whole))
	for i := range whole {
		require.True(t, decodeRecord(whole[:i]).Damaged, "%q", whole[:i])
	}
	old := []byte(`{"thread":"T","head":"0123456789ABC","role":"r","command":["a"],"pid":7,"startedAt":8,"status":"running","check":"00000000"}`)
	require.Equal(t, r, decodeRecord(old), "one of a version that wrote a sum")
}
