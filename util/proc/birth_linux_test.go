package proc_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

func TestReused(t *testing.T) {
	t.Parallel()
	mine := proc.Birth(os.Getpid())
	require.NotEmpty(t, mine)
	require.Equal(t, mine, proc.Birth(os.Getpid()))
	require.False(t, proc.Reused(os.Getpid(), mine))
	require.True(t, proc.Reused(os.Getpid(), "1"+mine))
	require.False(t, proc.Reused(os.Getpid(), ""), "nobody knows")
	const nobody = 1<<22 + 1
	require.Empty(t, proc.Birth(nobody))
	require.False(t, proc.Reused(nobody, mine))
}
