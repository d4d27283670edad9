package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/originaltest"
	"github.com/united-workforce/uwf/protocol"
)

// One bad record does not keep the others from being imported.
func TestOneBadRecord(t *testing.T) {
	t.Parallel()
	t.Run("an impossible time", func(t *testing.T) {
		t.Parallel()
		for _, at := range []string{"-5", "1e300", "NaN", "253402300800000"} {
			u := newUser(t, originaltest.Flat)
			u.Var("@uwf/thread/"+endedThread, u.idle[2], map[string]string{"status": "end", "completedAt": at})
			status, report, errs := u.run()
			require.Zero(t, status, "%s: %s", at, errs)
			require.Equal(t, 2, report.Threads.Imported, at)
			require.Equal(t, u.idle[2], u.headOf(idleThread), at)
			end, err := u.index().Ended(t.Context(), endedThread)
			require.NoError(t, err, at)
			require.Positive(t, end.CompletedAt, "of its last step")
		}
	})
	t.Run("damaged tags", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, originaltest.Flat)
		u.Var("@uwf/thread/"+endedThread, u.idle[2], nil)
		u.SetTags("@uwf/thread/"+endedThread, `{"status": 1`)
		status, report, errs := u.run()
		require.Equal(t, protocol.CodeCorrupt.ExitCode(), status, errs)
		require.Len(t, report.Problems, 1)
		require.Contains(t, report.Problems[0].Reason, endedThread)
		require.Equal(t, u.idle[2], u.headOf(idleThread))
	})
	t.Run("a thread that is damaged here", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, originaltest.Flat)
		u.run()
		first := u.Steps("solve", u.idle[0], originaltest.Step{Role: "writer", Status: "unclear"})
		require.NoError(t, u.index().Move(t.Context(), idleThread, u.idle[2], first[0])) // whose nodes were never brought
		u.Var("@uwf/thread/"+earlyThread, u.idle[1], nil)
		status, report, errs := u.run()
		require.Equal(t, protocol.CodeCorrupt.ExitCode(), status, errs)
		require.Len(t, report.Problems, 1)
		require.Equal(t, idleThread, report.Problems[0].Name)
		require.Equal(t, 1, report.Threads.Failed)
		require.Equal(t, u.idle[1], u.headOf(earlyThread), "the others are brought")
		require.Equal(t, first[0], u.headOf(idleThread), "nothing that is here is changed")
	})
}
