package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/usertest"
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

// A record that was being appended when the engine was killed doesn't count, and the one before it does.
func TestUpdatedRecord(t *testing.T) {
	t.Parallel()
	d := Dir{Path: t.TempDir(), FS: durable.OS()}
	first := Record{Thread: "T", Head: "0123456789ABC", Role: "r", Command: []string{"a"}, StartedAt: 8, Status: Starting}
	second := first
	second.Status, second.Pid = Running, 7
	require.NoError(t, d.Write(first))
	one, err := os.ReadFile(d.File(runfiles.RecordFile))
	require.NoError(t, err)
	require.NoError(t, d.Update(second))
	both, err := os.ReadFile(d.File(runfiles.RecordFile))
	require.NoError(t, err)
	require.Equal(t, second, d.Read())
	for i := len(one); i < len(both); i++ {
		require.NoError(t, os.WriteFile(d.File(runfiles.RecordFile), both[:i], 0o600))
		require.Equal(t, first, d.Read(), "%q", both[:i])
		require.Equal(t, string(Starting), runfiles.Dir(d.Path).Record().Status)
		require.NoError(t, d.Update(second))
		require.Equal(t, second, d.Read(), "%q", both[:i])
	}
	for range 100 {
		require.NoError(t, d.Update(second))
		require.Equal(t, second, d.Read())
	}
	info, err := os.Stat(d.File(runfiles.RecordFile))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(8<<10+1))
}

// A lock that can't be tested may be an agent's.
func TestAnUntestedLock(t *testing.T) {
	t.Parallel()
	if os.Getuid() <= 0 {
		t.Skip("root opens everything")
	}
	d := Dir{Path: t.TempDir(), FS: durable.OS()}
	require.False(t, d.SurelyAlive(t.Context(), Record{}))
	require.NoError(t, os.WriteFile(d.File(runfiles.LockFile), nil, 0o600))
	require.False(t, d.SurelyAlive(t.Context(), Record{}))
	require.NoError(t, os.Chmod(d.File(runfiles.LockFile), 0))
	require.True(t, d.SurelyAlive(t.Context(), Record{}))
}

// An agent can close a directory that it leaves in the place of a file.
func TestAClosedObstacle(t *testing.T) {
	t.Parallel()
	if !usertest.Ordinary(t) {
		return
	}
	d := Dir{Path: t.TempDir(), Aside: filepath.Join(t.TempDir(), "quarantine"), FS: durable.OS()}
	require.NoError(t, os.MkdirAll(filepath.Join(d.File(runfiles.RecordFile), "a"), 0o700))
	require.NoError(t, os.Chmod(d.File(runfiles.RecordFile), 0))
	require.NoError(t, d.Write(Record{Thread: "T", Head: "0123456789ABC", Role: "r", Status: Running}))
	require.Equal(t, "r", d.Read().Role)
}
