package proc

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// If process ids may have wrapped around, all processes are examined.
func TestYounger(t *testing.T) {
	t.Parallel()
	for took, all := range map[time.Duration]bool{0: false, time.Millisecond: false, time.Second: true, -time.Second: true} {
		m := Moment{last: os.Getpid()}
		if Now().last <= m.last {
			t.Skip("process ids have wrapped around")
		}
		pids, err := m.Within(took).younger(m.last + 1)
		require.NoError(t, err)
		require.Equal(t, all, pids[0] <= m.last)
	}
}
