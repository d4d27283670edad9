package proc

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// After a time in which the kernel may have given all numbers and begun again, older processes are looked at, too.
func TestYounger(t *testing.T) {
	t.Parallel()
	for took, all := range map[time.Duration]bool{0: false, time.Millisecond: false, time.Second: true, -time.Second: true} {
		m := Moment{last: os.Getpid()}
		if Now().last <= m.last {
			t.Skip("the numbers have begun again")
		}
		pids, err := m.Within(took).younger(m.last + 1)
		require.NoError(t, err)
		require.Equal(t, all, pids[0] <= m.last)
	}
}
